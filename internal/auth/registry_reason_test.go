package auth

import (
	"slices"
	"strings"
	"testing"
)

func TestReadRefusal(t *testing.T) {
	for _, test := range []struct {
		name, contentType, body, want string
		codes                         []string
	}{
		{"distribution", "application/json", `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required","detail":[{"Type":"repository"}]}]}`,
			"authentication required", []string{"UNAUTHORIZED"}},
		{"several", "application/json", `{"errors":[{"code":"DENIED","message":"denied"},{"code":"NAME_UNKNOWN","message":"no repository"}]}`,
			"denied; no repository", []string{"DENIED", "NAME_UNKNOWN"}},
		{"code alone", "application/json", `{"errors":[{"code":"TOOMANYREQUESTS"}]}`, "toomanyrequests", []string{"TOOMANYREQUESTS"}},
		{"Docker Hub's token server", "application/json", `{"details":"incorrect username or password"}`, "incorrect username or password", nil},
		{"OAuth2", "application/json", `{"error":"invalid_grant","error_description":"AADSTS700016: no such application"}`, "AADSTS700016: no such application", nil},
		{"AWS", "application/x-amz-json-1.1", `{"__type":"AccessDeniedException","message":"not authorized to perform"}`, "not authorized to perform", nil},
		{"GCP", "application/json", `{"error":{"code":403,"message":"x"}}`, "", nil},
		{"HTML", "text/html; charset=utf-8", "<html><head><title>403 Forbidden &amp; gone</title></head><body>nginx</body></html>", "403 Forbidden & gone", nil},
		{"HTML that says to be JSON", "application/json", "<!DOCTYPE html><h1>Sorry</h1>", "Sorry", nil},
		{"HTML without title", "text/html", "<p>hello", "", nil},
		{"text", "text/plain", "too many requests\nretry later", "too many requests", nil},
		{"broken JSON", "application/json", `{"errors":[{"code":`, "", nil},
		{"empty", "", "", "", nil},
		{"control characters", "text/plain", "a\x1b[31mred\u202e\x00 b", "a[31mred b", nil},
		{"long", "text/plain", strings.Repeat("x", 10_000), strings.Repeat("x", maxReasonRunes) + "…", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ReadRefusal(test.contentType, test.body)
			if got.Reason != test.want || !slices.Equal(got.Codes, test.codes) {
				t.Errorf("got %q %q, want %q %q", got.Reason, got.Codes, test.want, test.codes)
			}
		})
	}
}
