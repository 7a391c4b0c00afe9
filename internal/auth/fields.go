package auth

import (
	"fmt"
	"regexp"
)

// A Part is a part of a host, a path or a query that a manifest or a Secret names. Anything else than what it may be could
// end the part and begin another: a region with a slash in it names another host.
type Part int

// The parts of addresses that manifests name.
const (
	RegionPart Part = iota
	BucketPart
	TenantPart
	ClientPart
	OwnerPart
)

var (
	// regionForm is a label of a host's name.
	regionForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	// bucketForm is what any of the stores takes: S3 did once take upper case and '_', Azure has '$web'.
	bucketForm = regexp.MustCompile(`^\$?[A-Za-z0-9]([A-Za-z0-9._-]{0,253}[A-Za-z0-9])?$`)
	tenantForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	clientForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?$`)
	ownerForm  = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$`)
)

func (p Part) form() (*regexp.Regexp, string) {
	switch p {
	case RegionPart:
		return regionForm, "a region, of letters, digits and '-'"
	case BucketPart:
		return bucketForm, "the name of a bucket, of letters, digits, '.', '-' and '_'"
	case TenantPart:
		return tenantForm, "a tenant, of letters, digits, '.' and '-'"
	case ClientPart:
		return clientForm, "a client ID, of letters, digits and '-'"
	}
	return ownerForm, "the name of an account, of letters, digits, '-' and '_'"
}

// Check returns a *PartError for a value that cannot be such a part. The name is that of the field.
func (p Part) Check(name, value string) error {
	form, want := p.form()
	if form.MatchString(value) {
		return nil
	}
	return &PartError{Field: name, Want: want}
}

// A PartError says that the value of a field cannot be part of an address. It does not hold the value, which may be a
// Secret's.
type PartError struct {
	Field string
	Want  string
}

func (e *PartError) Error() string { return fmt.Sprintf("%s is not %s", e.Field, e.Want) }

// Transient is false.
func (e *PartError) Transient() bool { return false }
