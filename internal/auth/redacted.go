package auth

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted stands where a secret was.
const redacted = "REDACTED"

// Redacted is embedded in types with secrets, which then print as "REDACTED" by every means. Packages that use
// reflection on unexported fields bypass it: such fields have to be functions, of which only the address can be shown.
type Redacted struct{}

// Format serves every verb of the fmt package.
func (Redacted) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String is for those who do not go through the fmt package.
func (Redacted) String() string { return redacted }

// MarshalText covers encoders of keys and of most formats.
func (Redacted) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON is its own method because some encoders do not look for MarshalText.
func (Redacted) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML covers the encoders that convert by it.
func (Redacted) MarshalYAML() (any, error) { return redacted, nil }

// LogValue covers structured logs.
func (Redacted) LogValue() slog.Value { return slog.StringValue(redacted) }
