package auth

import (
	"cmp"
	"encoding/json"
	"html"
	"mime"
	"regexp"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	// maxReasonBytes is how much of a refusal's body is looked at.
	maxReasonBytes = 8 << 10
	// maxReasonRunes is how much of a server's own words is shown.
	maxReasonRunes = 200
)

// registryCode is the code of an error in the distribution specification.
type registryCode = string

// Refusal is the error in the body of an answer that is not 200, from a registry or its token server.
type Refusal struct {
	Codes  []registryCode // NAME_UNKNOWN, MANIFEST_UNKNOWN, DENIED, TOOMANYREQUESTS, …
	Reason string         // one printable line, may be empty
}

// ReadRefusal understands the JSON of the distribution specification, the shorter kinds of JSON that clouds and proxies
// use, HTML pages, and plain text. The body has to be scrubbed by the caller.
func ReadRefusal(contentType, body string) Refusal {
	body = body[:min(len(body), maxReasonBytes)]
	if r, ok := readJSONRefusal(body); ok {
		return r
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	trimmed := strings.TrimSpace(body)
	switch {
	case kind == "text/html" || strings.HasPrefix(trimmed, "<"):
		return Refusal{Reason: printable(htmlTitle(trimmed))}
	case strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "["):
		return Refusal{}
	}
	line, _, _ := strings.Cut(trimmed, "\n")
	return Refusal{Reason: printable(line)}
}

// refusalReason is the reason alone.
func refusalReason(contentType, body string) string { return ReadRefusal(contentType, body).Reason }

type registryError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func readJSONRefusal(body string) (Refusal, bool) {
	var answer struct {
		Errors      []registryError `json:"errors"`
		Code        json.RawMessage `json:"code"`
		Message     json.RawMessage `json:"message"`
		Error       json.RawMessage `json:"error"`
		Details     json.RawMessage `json:"details"`
		Description json.RawMessage `json:"error_description"`
	}
	if json.Unmarshal([]byte(body), &answer) != nil {
		return Refusal{}, false
	}
	var r Refusal
	var parts []string
	for _, e := range answer.Errors {
		code := printable(e.Code)
		r.Codes = append(r.Codes, code)
		if part := cmp.Or(e.Message, strings.ToLower(strings.ReplaceAll(code, "_", " "))); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, cmp.Or(text(answer.Description), text(answer.Message), text(answer.Details), text(answer.Error)))
	}
	if code := text(answer.Code); code != "" {
		r.Codes = append(r.Codes, printable(code))
	}
	r.Reason = printable(strings.Join(parts, "; "))
	return r, true
}

// text returns a JSON string, or "" for other values: some registries have objects and numbers in these fields.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

var titlePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<(?:title|h1)[^>]*>([^<]*)<`) })

func htmlTitle(page string) string {
	if m := titlePattern().FindStringSubmatch(page); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// printable makes one bounded line of a text from outside.
func printable(s string) string { return finding.OneLine(s, maxReasonRunes) }
