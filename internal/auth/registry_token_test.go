package auth

import (
	"strings"
	"testing"
)

// TestReadToken reads an answer that is as large as one may be.
func TestReadToken(t *testing.T) {
	body := `{"token": "a"}`
	body += strings.Repeat(" ", maxTokenBytes-len(body))
	if header, _, problem := readToken([]byte(body)); header != "Bearer a" || problem != "" {
		t.Errorf("%q: %s", header, problem)
	}
	if header, _, problem := readToken([]byte(body + " ")); header != "" || problem != "its answer is too large for a token" {
		t.Errorf("%q: %s", header, problem)
	}
}
