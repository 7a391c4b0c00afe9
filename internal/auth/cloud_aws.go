package auth

import (
	"context"
	"errors"
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

var errNoAuthorizationData = errors.New("the registry's answer contains no authorization token")

// awsLogin uses the SDK's default chain: environment keys, AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, profiles,
// the credentials of containers, the instance's role.
func awsLogin(ctx context.Context, c *Cloud, host string) (Credential, time.Time, error) {
	registry, _ := parseECR(host)
	cfg, _, err := loadAWS(ctx, c.CloudOptions, config.WithRegion(registry.region))
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	api := privateAPI
	if host == ecrPublic {
		api = publicAPI
	}
	return api.login(ctx, cfg, registry, c.Now)
}
