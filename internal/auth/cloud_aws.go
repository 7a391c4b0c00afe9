package auth

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
)

// ecrPublic is the registry for everybody. Its logins are given out in one region only.
const (
	ecrPublic       = "public.ecr.aws"
	ecrPublicRegion = "us-east-1"
)

// ecrHost matches ACCOUNT.dkr.ecr.REGION.SUFFIX and its FIPS and dual-stack forms, in every partition of AWS.
var ecrHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(-fips)?\.([a-z0-9-]+)\.` +
		`(amazonaws\.com(?:\.cn)?|amazonaws\.eu|on\.aws|on\.amazonwebservices\.(?:com\.cn|eu)|` +
		`c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`)
})

type ecrRegistry struct {
	region, domain string
	fips           bool
}

func parseECR(host string) (ecrRegistry, bool) {
	if host == ecrPublic {
		return ecrRegistry{region: ecrPublicRegion, domain: "amazonaws.com"}, true
	}
	m := ecrHost().FindStringSubmatch(host)
	if m == nil {
		return ecrRegistry{}, false
	}
	return ecrRegistry{region: m[2], domain: m[3], fips: m[1] != ""}, true
}

func isECR(host string) bool {
	_, ok := parseECR(host)
	return ok
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
	cfg, _, err := loadAWS(ctx, p.options, config.WithRegion(registry.region))
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	if host == ecrPublic {
		return publicAPI.login(ctx, cfg, registry, p.options.Now)
	}
	return privateAPI.login(ctx, cfg, registry, p.options.Now)
}
