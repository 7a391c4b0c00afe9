package conceal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// pseudonymLength is the length of the digest in a pseudonym, in hexadecimal digits.
const pseudonymLength = 12

// Pseudonym returns the name of a file whose own name came from a Secret: equal for equal names, in every run. A name
// that can be guessed can be verified with it.
func Pseudonym(name string) string {
	sum := sha256.Sum256([]byte("helmsrc name " + name))
	return Hidden + "-" + hex.EncodeToString(sum[:])[:pseudonymLength]
}

// MadeOf reports whether a name contains any of the values: a distinguishing value anywhere, another value as a
// separate word.
func MadeOf(name string, values []string) bool {
	for _, value := range values {
		if value == "" || value == Hidden {
			continue
		}
		if Distinguishing(value) && strings.Contains(name, value) || replaceWord(name, value) != name {
			return true
		}
	}
	return false
}
