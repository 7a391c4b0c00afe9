package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ecrPublic is the registry for everybody. Its logins are given out in one region only.
const (
	ecrPublic       = "public.ecr.aws"
	ecrPublicRegion = "us-east-1"
)

// ecrHost matches ACCOUNT.dkr.ecr.REGION.SUFFIX and its FIPS and dual-stack forms, in every partition of AWS.
var ecrHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(-fips)?\.([a-z0-9-]+)\.` +
		`(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|on\.aws|on\.amazonwebservices\.(?:com\.cn|eu)|` +
		`c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`)
})

// parseECR returns where the API of a registry is, false for another host.
func parseECR(host string) (region string, fips, ok bool) {
	if host == ecrPublic {
		return ecrPublicRegion, false, true
	}
	m := ecrHost().FindStringSubmatch(host)
	if m == nil {
		return "", false, false
	}
	return m[2], m[1] != "", true
}

func isECR(host string) bool {
	_, _, ok := parseECR(host)
	return ok
}

// awsProvider uses the SDK's default chain: environment keys, AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, profiles,
// the credentials of containers, the instance's role.
type awsProvider struct{ options CloudOptions }

var errNoAuthorizationData = errors.New("the registry's answer holds no authorization token")

// Login implements Provider.
func (p *awsProvider) Login(ctx context.Context, host string) (Credential, time.Time, error) {
	region, fips, ok := parseECR(host)
	if !ok {
		return Credential{}, time.Time{}, fmt.Errorf("invalid AWS registry: '%s' is not ACCOUNT.dkr.ecr.REGION.amazonaws.com or %s", host, ecrPublic)
	}
	options := []func(*config.LoadOptions) error{config.WithRegion(region)}
	if fips {
		options = append(options, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	cfg, _, err := loadAWS(ctx, p.options, options...)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	token, expires, err := askECR(ctx, host == ecrPublic, cfg)
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusOK {
		err = errNoAuthorizationData
	}
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	return decodeECR(token, expires)
}

// askECR returns base64 of "AWS:password", and until when that is valid. Both are nil if the answer has none.
func askECR(ctx context.Context, public bool, cfg aws.Config) (token *string, expires *time.Time, err error) {
	if public {
		out, err := ecrpublic.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecrpublic.GetAuthorizationTokenInput{})
		if err != nil || out.AuthorizationData == nil {
			return nil, nil, err
		}
		return out.AuthorizationData.AuthorizationToken, out.AuthorizationData.ExpiresAt, nil
	}
	out, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil || len(out.AuthorizationData) == 0 {
		return nil, nil, err
	}
	return out.AuthorizationData[0].AuthorizationToken, out.AuthorizationData[0].ExpiresAt, nil
}

func decodeECR(token *string, expires *time.Time) (Credential, time.Time, error) {
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(token))
	user, password, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || password == "" {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	return BasicCredential(user, password), aws.ToTime(expires), nil
}
