package auth

import (
	"context"
	"crypto/x509"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// loadAWS returns the configuration that AWS's SDK finds in the environment. All its requests use the connections of o,
// and their failures are recorded by the returned keeper.
//
// AWS_CA_BUNDLE, or ca_bundle in the user's configuration, names the authorities in place of the system's. The SDK reads
// the file, and accepts only a client of its own type for it. Such a client would open separate connections. Therefore
// the SDK gets a client that only holds the authorities, and a middleware step in front of it that sends the requests.
func loadAWS(ctx context.Context, o CloudOptions, options ...func(*config.LoadOptions) error) (aws.Config, *failureKeeper, error) {
	client := cloudClient(o)
	failures := keepFailures(client)
	cfg, err := config.LoadDefaultConfig(ctx, append([]func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient()),
		config.WithDefaultsMode(aws.DefaultsModeLegacy), // other modes may call the metadata server before the step exists
		config.WithAPIOptions([]func(*middleware.Stack) error{sendBy(failures.client)}),
		config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = failures.client }),
	}, options...)...)
	if err != nil {
		return aws.Config{}, nil, err
	}
	if carrier, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		client.Transport.(*cloudTransport).trust(carrier.GetTransport().TLSClientConfig.RootCAs)
	}
	cfg.HTTPClient = failures.client
	return cfg, failures, nil
}

// sendBy makes the SDK send its requests with this client, regardless of the client in its configuration.
func sendBy(client *http.Client) func(*middleware.Stack) error {
	handler := smithyhttp.NewClientHandlerWithOptions(client)
	send := func(ctx context.Context, in middleware.DeserializeInput, _ middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		answer, metadata, err := handler.Handle(ctx, in.Request)
		return middleware.DeserializeOutput{RawResponse: answer}, metadata, err
	}
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("SendByRun", send), middleware.After)
	}
}

// trust sets the authorities of servers, in place of the system's; nil leaves those.
func (t *cloudTransport) trust(roots *x509.CertPool) {
	if roots == nil {
		return
	}
	for _, pool := range []*Pool{t.cloud, t.local} {
		pool.transport.TLSClientConfig.RootCAs = roots
	}
}
