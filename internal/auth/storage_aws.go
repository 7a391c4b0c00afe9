package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	awsStorageProvider = "aws"
	// awsDefaultRegion is the region of the STS endpoint if no region is configured.
	awsDefaultRegion = "us-east-1"
)

// awsDomain matches the end of the names of AWS's own services, in every partition. Customers have names below it, too:
// the part before it has to be the name of a service.
const awsDomain = `(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|api\.aws|api\.amazonwebservices\.(?:com\.cn|eu)|` +
	`c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`

var (
	// s3Host matches S3 with or without a region, a bucket, or an endpoint of a private network before it.
	s3Host = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:[a-z0-9][a-z0-9.-]*\.)?s3(?:-fips|-accelerate|-[a-z]{2}(?:-[a-z]+)+-[0-9]+)?(?:\.dualstack)?` +
			`(?:\.[a-z]{2}(?:-[a-z]+)+-[0-9]+)?(?:\.vpce)?\.` + awsDomain)
	})
	stsHost = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:vpce-[a-z0-9-]+\.)?sts(?:-fips)?(?:\.[a-z]{2}(?:-[a-z]+)+-[0-9]+)?(?:\.vpce)?\.` + awsDomain)
	})
)

// AWSStorage gives the keys of this machine's or job's identity for AWS's object store.
type AWSStorage struct {
	options CloudOptions
	to      *url.URL
	region  string
	sts     string
}

// AWSKeys are the keys that requests are signed with, until they expire. A zero time is never.
type AWSKeys struct {
	Access, Secret, Session string
	Expires                 time.Time
}

// MachineAWSStorage returns the identity of this machine or job for a bucket: the keys of the environment, or of the
// SDK's default chain. The region may be empty; sts is the endpoint of STS that a manifest names, mostly "". If a
// manifest chose the route, the error is a *WithheldError. No request is sent before the first keys are needed.
func MachineAWSStorage(o CloudOptions, on Route, region, sts string) (*AWSStorage, error) {
	if err := o.withhold(on, awsStorageProvider, s3Host().MatchString(on.to.Hostname())); err != nil {
		return nil, err
	}
	return &AWSStorage{o.ofMachine(), on.to, region, sts}, nil
}

// Keys returns keys that are good for a while. An error is a *CloudError, or the context's.
func (s *AWSStorage) Keys(ctx context.Context) (AWSKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	keys, err := s.keys(ctx)
	if err != nil {
		return AWSKeys{}, storageFailure(awsStorageProvider, err)
	}
	return keys, nil
}

func (s *AWSStorage) keys(ctx context.Context) (AWSKeys, error) {
	if err := s.checkHosts(); err != nil {
		return AWSKeys{}, err
	}
	env := s.options.Getenv
	if access, secret := env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"); access != "" && secret != "" {
		return AWSKeys{Access: access, Secret: secret, Session: env("AWS_SESSION_TOKEN")}, nil
	}
	options := []func(*config.LoadOptions) error{
		config.WithRegion(cmp.Or(env("AWS_REGION"), s.region, awsDefaultRegion)),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // retries obey the user's settings
	}
	if s.sts != "" {
		options = append(options, config.WithBaseEndpoint(s.sts))
	}
	cfg, failures, err := loadAWS(ctx, s.options, options...)
	if err != nil {
		return AWSKeys{}, err
	}
	if cfg.Credentials == nil {
		return AWSKeys{}, errNoAWSKeys
	}
	found, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return AWSKeys{}, failures.cause(err)
	}
	keys := AWSKeys{Access: found.AccessKeyID, Secret: found.SecretAccessKey, Session: found.SessionToken}
	if found.CanExpire {
		keys.Expires = found.Expires
	}
	return keys, nil
}

var errNoAWSKeys = errors.New("this machine has no identity at AWS")

// checkHosts refuses to show the identity to any server but AWS, unless the manifests are all the user's own.
func (s *AWSStorage) checkHosts() error {
	if s.options.Reach == ReachAnywhere {
		return nil
	}
	if !s3Host().MatchString(s.to.Hostname()) || s.to.Scheme != "https" {
		return foreignStorage(awsStorageProvider, s.to.Host)
	}
	if s.sts == "" {
		return nil
	}
	u, err := url.Parse(s.sts)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || !stsHost().MatchString(u.Hostname()) {
		return &finding.Problem{Text: fmt.Sprintf(finding.OtherSTS, RedactURL(s.sts)), Advice: finding.IdentityAnywhere}
	}
	return nil
}
