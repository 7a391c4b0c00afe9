package conceal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// pseudonymLength is how much of a digest is in a pseudonym, in hexadecimal digits.
const pseudonymLength = 12

// Pseudonym is what files are called whose own name came from a Secret: the same for the same name, in every run. A name
// that can be guessed can be found out by trying.
func Pseudonym(name string) string {
	sum := sha256.Sum256([]byte("helmsrc name " + name))
	return Hidden + "-" + hex.EncodeToString(sum[:])[:pseudonymLength]
}

// MadeOf reports whether a name is made of any of the values: one that says enough is anywhere in it, another a word
// of its own.
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
