package bucket

import (
	"errors"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// route is how the bucket's server is reached.
func (o Options) route(to *url.URL) auth.Route { return auth.NewRoute(to, o.Identity, o.Proxy) }

// s3URL is the server of a bucket whose endpoint is a host.
func (o Options) s3URL() *url.URL {
	if o.Insecure {
		return &url.URL{Scheme: "http", Host: o.Endpoint}
	}
	return &url.URL{Scheme: "https", Host: o.Endpoint}
}

// url is the server that the bucket's provider asks.
func (o Options) url() (*url.URL, error) {
	switch o.Provider {
	case providerGoogle:
		return googleEndpoint(o.Endpoint, o.Insecure)
	case providerAzure:
		return AzureEndpoint(o.Endpoint)
	}
	return o.s3URL(), nil
}

// Withheld returns a *auth.WithheldError if the bucket is read without the identity of the machine because the manifest
// chose the way to it.
func Withheld(c *fetch.Client, o Options) error {
	u, err := o.url()
	if err != nil || !o.Ambient && o.Login == nil {
		return nil // reported when the bucket is opened
	}
	switch {
	case o.Provider == providerGoogle && o.Login == nil:
		_, err = auth.MachineGoogleStorage(cloudOptions(c, o), o.route(u))
	case o.Provider == providerAWS && o.Login == nil:
		_, err = auth.MachineAWSStorage(cloudOptions(c, o), o.route(u), "", "")
	case o.Provider == providerAzure:
		_, err = azureStorage(c, o, u)
	}
	if isWithheld(err) {
		return err
	}
	return nil
}

// cloudOptions lead the keys of Secrets the way of the bucket: through its proxy, with its authorities.
func cloudOptions(c *fetch.Client, o Options) auth.CloudOptions {
	return auth.CloudOptions{
		Dial: c.Config.Dial, Getenv: c.Config.Getenv, Now: c.Config.Now,
		Identity: o.Identity, Proxy: o.Proxy, Reach: o.Reach, Acquire: c.Acquire,
	}
}

// check refuses names that would become another part of a URL than they are meant for.
func (o Options) check() error {
	if o.Region != "" {
		if err := auth.RegionPart.Check(finding.RegionField, o.Region); err != nil {
			return err
		}
	}
	return auth.BucketPart.Check(finding.BucketField, o.Bucket)
}

func isWithheld(err error) bool {
	var withheld *auth.WithheldError
	return errors.As(err, &withheld)
}

// unlessWithheld returns nil for an identity that is withheld, which Withheld reports.
func unlessWithheld[T any](identity *T, err error) (*T, error) {
	if isWithheld(err) {
		return nil, nil
	}
	return identity, err
}
