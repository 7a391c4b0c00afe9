package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func TestIdentityRedactsItself(t *testing.T) {
	id := NewBasic("canary-user", "canary-password")
	type holder struct {
		Exported Identity
		Pointer  *Identity
		hidden   Identity
		pointer  *Identity
	}
	h := holder{*id, id, *id, id}
	o := TransportOptions{Identity: id}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%p", "%T", "%10v", "%t"} {
		for _, value := range []any{id, *id, h, &h, []*Identity{id}, map[string]Identity{"a": *id}, o, &o, NewTransport(o)} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
	}
	for _, value := range []any{id, *id, h} {
		text, err := json.Marshal(value)
		texts = append(texts, string(text), fmt.Sprint(err))
		text, err = yaml.Marshal(value)
		texts = append(texts, string(text), fmt.Sprint(err))
		for _, newHandler := range []func(*strings.Builder) slog.Handler{
			func(b *strings.Builder) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *strings.Builder) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b strings.Builder
			slog.New(newHandler(&b)).Info("x", "id", value)
			texts = append(texts, b.String())
		}
	}
	texts = append(texts, id.String(), id.Key(), fmt.Errorf("failed: %v", errors.New(id.String())).Error())
	for _, text := range texts {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
			t.Errorf("shows the secret: %s", text)
		}
	}
	if got := fmt.Sprintf("%v", id); got != "REDACTED" {
		t.Errorf("prints as %q", got)
	}
}

func TestIdentityKey(t *testing.T) {
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	cert := func(ca, cert, key []byte) *Identity { return newIdentity(secrets{ca: ca, cert: cert, key: key}) }
	different := map[string]*Identity{
		"anonymous":     nil,
		"user":          NewBasic("a", "b"),
		"other":         NewBasic("a", "c"),
		"boundary":      NewBasic("ab", ""),
		"ca":            cert(kit.CA.Cert, nil, nil),
		"pair":          cert(nil, kit.Client.Cert, kit.Client.Key),
		"both":          cert(kit.CA.Cert, kit.Client.Cert, kit.Client.Key),
		"user and pair": cert(kit.CA.Cert, kit.Client.Cert, kit.Client.Key).WithBasic("a", "b"),
		"url":           (*Identity)(nil).WithUserinfo(url.UserPassword("a", "b")),
	}
	seen := map[string]string{}
	for name, id := range different {
		if other, found := seen[id.Key()]; found {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[id.Key()] = name
	}
	if NewBasic("a", "b").Key() != NewBasic("a", "b").Key() || (*Identity)(nil).Key() != new(Identity).Key() {
		t.Error("equal identities have different keys")
	}
}

func TestIdentityBasic(t *testing.T) {
	for _, tt := range []struct {
		name string
		id   *Identity
		ok   bool
	}{
		{"nil", nil, false},
		{"zero", new(Identity), false},
		{"both", NewBasic("a", "b"), true},
		{"no password", NewBasic("a", ""), false},
		{"no username", NewBasic("", "b"), false},
		{"token in URL", (*Identity)(nil).WithUserinfo(url.User("token")), true},
		{"nothing in URL", (*Identity)(nil).WithUserinfo(url.User("")), false},
	} {
		if _, _, ok := tt.id.Basic(); ok != tt.ok {
			t.Errorf("%s: %v, want %v", tt.name, ok, tt.ok)
		}
	}
	username, _, _ := NewBasic("secret", "x").WithUserinfo(url.User("url")).Basic()
	if username != "secret" {
		t.Errorf("the URL's user replaces the Secret's: %q", username)
	}
}

func TestScrub(t *testing.T) {
	id := NewBasic("user", "pass word")
	text := id.Scrub("Authorization: Basic dXNlcjpwYXNzIHdvcmQ= pass word pass+word pass%20word user")
	if strings.Contains(text, "word") || strings.Contains(text, "dXN") || !strings.HasSuffix(text, " user") {
		t.Errorf("got %q", text)
	}
	if got := (*Identity)(nil).Scrub("text"); got != "text" {
		t.Errorf("an anonymous identity changes %q", got)
	}
}
