package auth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ecrAPI is the API of a kind of registries. One operation of it is called, GetAuthorizationToken, signed by the SDK's signer: the
// SDK's clients have tables of all operations, which every start of the program would have to set up.
type ecrAPI struct{ id, service, target string }

var (
	privateAPI = ecrAPI{"ECR", "ecr", "AmazonEC2ContainerRegistry_V20150921"}
	publicAPI  = ecrAPI{"ECR PUBLIC", "ecr-public", "SpencerFrontendService"}
)

const (
	ecrOperation = "GetAuthorizationToken"
	ecrMediaType = "application/x-amz-json-1.1"

	// maxECRAnswer bounds an answer, in bytes.
	maxECRAnswer = 1 << 20

	// ecrAttempts is the limit of attempts per server, if the environment sets no other.
	ecrAttempts = 3
)

// ecrDomains maps the domains of AWS's registries to the domains of its APIs, if they differ.
var ecrDomains = map[string]string{
	"on.aws":                      "amazonaws.com",
	"on.amazonwebservices.com.cn": "amazonaws.com.cn",
	"on.amazonwebservices.eu":     "amazonaws.eu",
}

// dualStackDomains maps the domains of APIs to the domains that have IPv6 addresses as well.
var dualStackDomains = map[string]string{
	"amazonaws.com":    "api.aws",
	"amazonaws.com.cn": "api.amazonwebservices.com.cn",
	"amazonaws.eu":     "api.amazonwebservices.eu",
}

// login returns the login to a registry, and when it expires. It retries as often as the configuration cfg allows.
func (a ecrAPI) login(ctx context.Context, cfg aws.Config, r ecrRegistry, now func() time.Time) (Credential, time.Time, error) {
	cred, expires, err := a.attempts(ctx, cfg, a.endpoint(ctx, cfg, r), now)
	if err != nil && !errors.Is(err, errNoAuthorizationData) {
		err = &smithy.OperationError{ServiceID: a.id, OperationName: ecrOperation, Err: err}
	}
	return cred, expires, err
}

func (a ecrAPI) attempts(ctx context.Context, cfg aws.Config, endpoint string, now func() time.Time) (Credential, time.Time, error) {
	retryer := aws.Retryer(retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = cmp.Or(cfg.RetryMaxAttempts, ecrAttempts) }))
	if cfg.Retryer != nil {
		retryer = cfg.Retryer()
	}
	for attempt := 1; ; attempt++ {
		cred, expires, err := a.attempt(ctx, cfg, endpoint, now())
		if err == nil || attempt >= retryer.MaxAttempts() || !retryer.IsErrorRetryable(err) {
			return cred, expires, err
		}
		delay, refused := retryer.RetryDelay(attempt, err)
		if refused != nil {
			return cred, expires, err
		}
		select {
		case <-ctx.Done():
			return cred, expires, context.Cause(ctx)
		case <-time.After(delay):
		}
	}
}

func (a ecrAPI) attempt(ctx context.Context, cfg aws.Config, endpoint string, at time.Time) (Credential, time.Time, error) {
	request, err := a.signed(ctx, cfg, endpoint, at)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	response, err := cfg.HTTPClient.Do(request)
	if err != nil {
		return Credential{}, time.Time{}, &smithyhttp.RequestSendError{Err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxECRAnswer))
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	if response.StatusCode != http.StatusOK {
		return Credential{}, time.Time{}, &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: response}, Err: ecrFault(response, body)}
	}
	return decodeECR(body)
}

// signed returns the request, signed with the keys of this machine.
func (a ecrAPI) signed(ctx context.Context, cfg aws.Config, endpoint string, at time.Time) (*http.Request, error) {
	if cfg.Credentials == nil {
		return nil, errNoAWSKeys
	}
	keys, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("get identity: get credentials: %w", err)
	}
	body := []byte("{}")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", ecrMediaType)
	request.Header.Set("X-Amz-Target", a.target+"."+ecrOperation)
	sum := sha256.Sum256(body)
	return request, v4.NewSigner().SignHTTP(ctx, keys, request, hex.EncodeToString(sum[:]), a.service, cfg.Region, at)
}

// ecrFault returns the API error in an answer without a login.
func ecrFault(response *http.Response, body []byte) error {
	var fault struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &fault) // a proxy may answer with anything
	code, _, _ := strings.Cut(cmp.Or(response.Header.Get("X-Amzn-Errortype"), fault.Type, "UnknownError"), ":")
	return &smithy.GenericAPIError{Code: code[strings.LastIndexByte(code, '#')+1:], Message: fault.Message}
}

// decodeECR reads an answer. One API has a list of logins in it, the other one login.
func decodeECR(body []byte) (Credential, time.Time, error) {
	type data struct {
		Token   string  `json:"authorizationToken"` // base64 of "AWS:password"
		Expires float64 `json:"expiresAt"`          // seconds
	}
	var answer struct {
		Data json.RawMessage `json:"authorizationData"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	login, list := data{}, []data{}
	if json.Unmarshal(answer.Data, &list) == nil && len(list) > 0 {
		login = list[0]
	} else if json.Unmarshal(answer.Data, &login) != nil {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	raw, err := base64.StdEncoding.DecodeString(login.Token)
	user, password, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || password == "" {
		return Credential{}, time.Time{}, errNoAuthorizationData
	}
	return BasicCredential(user, password), time.Unix(int64(login.Expires), 0), nil
}

// endpoint returns the address of the API: the one in AWS's own configuration, else the default of the region.
func (a ecrAPI) endpoint(ctx context.Context, cfg aws.Config, r ecrRegistry) string {
	if configured := a.configured(ctx, cfg); configured != "" {
		return configured
	}
	name, domain := a.service, cmp.Or(ecrDomains[r.domain], r.domain)
	if r.fips || setting(cfg, func(s fipsSource) (aws.FIPSEndpointState, bool, error) { return s.GetUseFIPSEndpoint(ctx) }) == aws.FIPSEndpointStateEnabled {
		name += "-fips"
	}
	prefix := "api."
	dual := setting(cfg, func(s dualStackSource) (aws.DualStackEndpointState, bool, error) {
		return s.GetUseDualStackEndpoint(ctx)
	})
	if dual == aws.DualStackEndpointStateEnabled && dualStackDomains[domain] != "" {
		prefix, domain = "", dualStackDomains[domain]
	}
	return "https://" + prefix + name + "." + r.region + "." + domain
}

// configured is the address that the environment or AWS's configuration file names, or empty.
func (a ecrAPI) configured(ctx context.Context, cfg aws.Config) string {
	if ignored, _, err := config.GetIgnoreConfiguredEndpoints(ctx, cfg.ConfigSources); err != nil || ignored {
		return ""
	}
	own := setting(cfg, func(s endpointSource) (string, bool, error) { return s.GetServiceBaseEndpoint(ctx, a.id) })
	return cmp.Or(own, aws.ToString(cfg.BaseEndpoint))
}

type (
	fipsSource interface {
		GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error)
	}
	dualStackSource interface {
		GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error)
	}
	endpointSource interface {
		GetServiceBaseEndpoint(context.Context, string) (string, bool, error)
	}
)

// setting returns a setting from the first source of AWS's configuration that has it.
func setting[S, T any](cfg aws.Config, get func(S) (T, bool, error)) (value T) {
	for _, source := range cfg.ConfigSources {
		s, ok := source.(S)
		if !ok {
			continue
		}
		if found, ok, err := get(s); ok && err == nil {
			return found
		}
	}
	return value
}
