package auth

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A Route describes how the connections to one host are made, and whether a manifest chose it. It is made of everything
// that a manifest can set for connections; transports make their connections of the same values.
//
// Credentials of the environment (logins of docker, podman and helm, the identity of the machine) are returned only for
// a Route, and only if no manifest chose it: TLS that is verified with the system's authorities, through the
// environment's proxy. Within this machine, plain HTTP is as good. Credentials from the Secrets of a manifest are sent
// to every host that the manifest names.
type Route struct {
	to       *url.URL
	identity *Identity
	proxy    *Proxy
}

// NewRoute returns the route to a server with the TLS settings and the proxy of a manifest, which may be nil.
func NewRoute(to *url.URL, identity *Identity, proxy *Proxy) Route { return Route{to, identity, proxy} }

// host returns the server's host, with its port.
func (r Route) host() string { return r.to.Host }

// chosenBy names the field with which a manifest chose the route, or is empty for a route of the environment.
func (r Route) chosenBy() string {
	s := r.identity.reveal()
	switch {
	case s.skipped:
		return skipVerification
	case r.proxy != nil:
		return "proxy"
	case isLoopbackHost(r.to.Hostname()):
		return ""
	case s.unverified:
		return "insecure"
	case r.to.Scheme != "https":
		return "http"
	case len(s.ca) > 0 && !s.ambient:
		return "authority"
	}
	return ""
}

// skipVerification is WithheldError.By of the flag.
const skipVerification = "insecure-skip-tls-verify"

// Reach is how far the credentials of the environment may go.
type Reach int

const (
	// ReachHome is by the routes of the environment.
	ReachHome Reach = iota
	// ReachAnywhere is also by a route that a manifest chose, for those who wrote every manifest.
	ReachAnywhere
	// ReachNowhere is not at all: the manifests are a stranger's.
	ReachNowhere
)

// withhold returns the error that reports why a credential of the environment may not use the route, nil if it may.
func (r Route) withhold(what string, reach Reach) error {
	by := r.chosenBy()
	switch {
	case reach == ReachNowhere:
		by = "untrusted"
	case by == skipVerification: // however far it may reach
	case by == "" || reach == ReachAnywhere:
		return nil
	}
	return withheld(what, r.host(), by)
}

// A WithheldError reports that a credential of the environment is not used, because a manifest chose how its server is
// reached.
type WithheldError struct {
	finding.Problem
	By string // the field of the manifest; "http" is the scheme of the URL, "untrusted" and "insecure-skip-tls-verify" are the flags
}

func withheld(what, host, by string) error {
	why := map[string]string{
		"proxy":          finding.ManifestProxy,
		"authority":      finding.ManifestCA,
		"insecure":       finding.ManifestInsecure,
		"http":           "it is reached over plain HTTP",
		skipVerification: finding.SkipsVerification,
		"untrusted":      finding.LeavesOutOthers,
	}[by]
	instead := map[string]string{"untrusted": finding.LoginForUntrusted, skipVerification: finding.LoginForUnverified}[by]
	return &WithheldError{By: by, Problem: finding.Problem{
		Class: finding.Login | finding.Lasting, Text: fmt.Sprintf("%s is not sent to '%s': %s", what, host, why),
		Advice: cmp.Or(instead, finding.LoginAnywhere),
	}}
}

// isLoopbackHost reports whether a host is written as one of this machine.
func isLoopbackHost(host string) bool {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.Unmap().IsLoopback()
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
