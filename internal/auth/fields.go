package auth

import (
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A Part is a part of a host, a path or a query that a manifest or a Secret names. A value of another form could end the
// part and begin another: a region with a slash in it names another host.
type Part int

// The parts of addresses that manifests name.
const (
	RegionPart Part = iota
	BucketPart
	TenantPart
	ClientPart
	OwnerPart
)

// form reports whether a value is a valid part of this kind, and describes the valid form.
func (p Part) form(value string) (ok bool, want string) {
	switch p {
	case RegionPart: // a label of a host's name
		return isName(value, "-", 63), "a region, of letters, digits and '-'"
	case BucketPart: // S3 did once take upper case and '_', Azure has '$web'
		return isName(strings.TrimPrefix(value, "$"), "._-", 255), "the name of a bucket, of letters, digits, '.', '-' and '_'"
	case TenantPart:
		return isName(value, ".-", 253), "a tenant, of letters, digits, '.' and '-'"
	case ClientPart:
		return isName(value, "-", 128), "a client ID, of letters, digits and '-'"
	}
	return isName(strings.ReplaceAll(value, "_", "x"), "-", 100), "the name of an account, of letters, digits, '-' and '_'"
}

// isName reports whether a value has letters and digits, and signs between them, and at most as many as that.
func isName(value, signs string, most int) bool {
	if value == "" || len(value) > most || strings.ContainsAny(value[:1]+value[len(value)-1:], signs) {
		return false
	}
	for _, c := range value {
		isAlphanumeric := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isAlphanumeric && !strings.ContainsRune(signs, c) {
			return false
		}
	}
	return true
}

// Check returns an error for a value that is not a valid part. The name is the field's. The error does not quote the value,
// which may be a Secret's.
func (p Part) Check(name, value string) error {
	ok, want := p.form(value)
	if ok {
		return nil
	}
	return &finding.Problem{Class: finding.Lasting, Text: name + " is not " + want}
}
