package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"
)

// ecrPublic is the registry for everybody. Its logins are given out in one region only.
const (
	ecrPublic       = "public.ecr.aws"
	ecrPublicRegion = "us-east-1"
)

// ecrHost matches ACCOUNT.dkr.ecr.REGION.SUFFIX and its FIPS and dual-stack forms, in every partition of AWS.
var ecrHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{12})\.dkr[.-]ecr(-fips)?\.([a-z0-9-]+)\.` +
		`(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|on\.aws|on\.amazonwebservices\.(?:com\.cn|eu)|` +
		`c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`)
})

type ecrRegistry struct {
	account, region string
	fips            bool
}

func parseECR(host string) (ecrRegistry, bool) {
	if host == ecrPublic {
		return ecrRegistry{region: ecrPublicRegion}, true
	}
	m := ecrHost().FindStringSubmatch(host)
	if m == nil {
		return ecrRegistry{}, false
	}
	return ecrRegistry{account: m[1], region: m[3], fips: m[2] != ""}, true
}

// awsProvider uses the SDK's default chain: environment keys, AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, profiles,
// the credentials of containers, the instance's role.
type awsProvider struct{ options CloudOptions }

var errNoAuthorizationData = errors.New("the registry's answer holds no authorization token")

// Login implements Provider.
func (p *awsProvider) Login(ctx context.Context, host string) (Credential, time.Time, error) {
	registry, ok := parseECR(host)
	if !ok {
		return Credential{}, time.Time{}, fmt.Errorf("invalid AWS registry: '%s' is not ACCOUNT.dkr.ecr.REGION.amazonaws.com or %s", host, ecrPublic)
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(registry.region)}
	if registry.fips {
		options = append(options, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	cfg, _, err := loadAWS(ctx, p.options, options...)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	if host == ecrPublic {
		return publicToken(ctx, cfg)
	}
	return privateToken(ctx, cfg)
}

func privateToken(ctx context.Context, cfg aws.Config) (Credential, time.Time, error) {
	out, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	if len(out.AuthorizationData) == 0 {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	data := out.AuthorizationData[0]
	return decodeECR(data.AuthorizationToken, data.ExpiresAt)
}

func publicToken(ctx context.Context, cfg aws.Config) (Credential, time.Time, error) {
	out, err := ecrpublic.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecrpublic.GetAuthorizationTokenInput{})
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	if out.AuthorizationData == nil {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	return decodeECR(out.AuthorizationData.AuthorizationToken, out.AuthorizationData.ExpiresAt)
}

// decodeECR splits base64 of "AWS:password".
func decodeECR(token *string, expires *time.Time) (Credential, time.Time, error) {
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(token))
	user, password, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || password == "" {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	return BasicCredential(user, password), aws.ToTime(expires), nil
}
