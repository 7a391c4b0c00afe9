package helmtest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Canary is a secret string. It may be sent to some servers, and must not appear elsewhere.
type Canary struct {
	Value string
	Addrs []string // names and ports in the network
}

// Canaries returns the credentials that the servers of the world require, and the tokens that they issued.
func (w *World) Canaries() []Canary {
	var list []Canary
	for _, name := range slices.Sorted(maps.Keys(w.Configs)) {
		c := w.Configs[name]
		addrs := []string{c.Addr}
		if w.Realms[name] != "" {
			addrs = append(addrs, w.Realms[name])
		}
		for _, secret := range c.Auth.Secrets() {
			list = append(list, Canary{secret, addrs})
		}
		if w.Issued[name] != nil {
			for _, token := range w.Issued[name]() {
				list = append(list, Canary{token, []string{c.Addr}})
			}
		}
	}
	return list
}

// Leaks returns the requests that sent a canary to a server that must not get it.
func (w *World) Leaks(canaries []Canary) []string {
	var leaks []string
	for _, name := range slices.Sorted(maps.Keys(w.Servers)) {
		for _, r := range w.Servers[name].Log.All() {
			for _, c := range canaries {
				for _, addr := range r.carries(c.Value, w.Servers[name].Addr) {
					if !slices.Contains(c.Addrs, addr) {
						leaks = append(leaks, fmt.Sprintf("%q was sent to %s: %s", c.Value, addr, r))
					}
				}
			}
		}
	}
	return leaks
}

// carries returns the addresses to which a request sends the secret. In plain HTTP a proxy sees everything; secrets that are
// not for the proxy itself count as sent to the server behind it.
func (r Request) carries(secret, server string) []string {
	target := server
	if strings.HasPrefix(r.URI, "http://") {
		target = defaultPort(r.Host, "80")
	}
	var addrs []string
	if Holds([]byte(r.URI), secret) {
		addrs = append(addrs, target)
	}
	for key, values := range r.Header {
		to := target
		if key == "Proxy-Authorization" {
			to = server
		}
		for _, v := range values {
			if holdsBasic(v, secret) {
				addrs = append(addrs, to)
			}
		}
	}
	return addrs
}

// holdsBasic decodes credentials, to find short secrets as well.
func holdsBasic(value, secret string) bool {
	if kind, encoded, _ := strings.Cut(value, " "); strings.EqualFold(kind, "basic") {
		if clear, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return strings.Contains(string(clear), secret)
		}
	}
	return Holds([]byte(value), secret)
}

func defaultPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// Holds reports whether a secret is in b: literally, escaped for a URL, in base64 at any offset, or any of these inside gzip.
func Holds(b []byte, secret string) bool {
	for _, form := range forms(secret) {
		if bytes.Contains(b, []byte(form)) {
			return true
		}
	}
	if gz, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		const enough = 64 << 20
		clear, _ := io.ReadAll(io.LimitReader(gz, enough)) // the readable part of a broken archive is enough
		return len(clear) > 0 && Holds(clear, secret)
	}
	return false
}

// forms returns the encodings of a secret. In base64 the first and last letters depend on the adjacent bytes; they are
// omitted.
func forms(secret string) []string {
	list := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	for offset := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			s := enc.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
			first, last := []int{0, 2, 3}[offset], len(s)-1
			if (offset+len(secret))%3 == 0 {
				last = len(s)
			}
			if last-first >= minForm {
				list = append(list, s[first:last])
			}
		}
	}
	return list
}

// minForm is the length of a piece of base64 that rarely occurs by chance.
const minForm = 6
