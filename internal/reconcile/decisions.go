package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// decisions returns a context that reports the decisions about an object, if the options ask for them.
func (p *reconciliation) decisions(ctx context.Context) context.Context {
	if !p.r.o.Decisions {
		return ctx
	}
	ctx = fetch.With(ctx, func(text string) { p.r.progress.Decided(p.adm, text) })
	p.decideCredentials(ctx)
	return ctx
}

// decideCredentials reports where the credentials of an object come from, never their values.
func (p *reconciliation) decideCredentials(ctx context.Context) {
	spec, _ := p.adm.Content["spec"].(map[string]any)
	for _, field := range credentialFields() {
		if name, ok := manifest.ValueAt(p.adm.Content, append(steps(field), "name")).(string); ok {
			fetch.Decided(ctx, "credentials: %s is %s", field, p.secretNamed(name))
		}
	}
	provider, _ := spec["provider"].(string)
	switch _, named := spec["secretRef"]; {
	case named || !p.kind.source || p.directory():
	case provider != "" && provider != "generic":
		fetch.Decided(ctx, "credentials: spec.provider is %s: the identity of this machine there", provider)
	default:
		fetch.Decided(ctx, "credentials: there is no spec.secretRef")
	}
}

func (p *reconciliation) directory() bool {
	_, ok := p.r.o.Directories[p.key]
	return ok
}

func (p *reconciliation) secretNamed(name string) string {
	at := fmt.Sprintf("Secret %s/%s", p.adm.Object.Namespace, name)
	secret, err := p.r.secrets.Secret(p.adm.Object.Namespace, &meta.LocalObjectReference{Name: name}, "")
	switch {
	case err == nil:
		return fmt.Sprintf("%s at %s", at, secret.Pos)
	case p.r.o.MissingSecrets != "":
		return fmt.Sprintf(finding.SecretMissing, at, p.r.o.MissingSecrets)
	}
	return at + ", which is not available"
}

func decideLogin(ctx context.Context, ask func(context.Context) auth.Login) {
	if !fetch.Deciding(ctx) {
		return
	}
	switch shown := ask(ctx); {
	case shown.Credential.IsZero():
		fetch.Decided(ctx, "credentials: none are sent to the registry")
	default:
		fetch.Decided(ctx, "credentials: the registry gets the login of %s", shown.Source)
	}
}

const maxNamedCandidates = 5

func decideVersion(ctx context.Context, candidates []resolve.Candidate, asked, chosen string) {
	if !fetch.Deciding(ctx) {
		return
	}
	names := make([]string, 0, maxNamedCandidates)
	for _, c := range candidates[:min(len(candidates), maxNamedCandidates)] {
		names = append(names, c.Version)
	}
	listed := strings.Join(names, ", ")
	if more := len(candidates) - len(names); more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	asked = cmp.Or(asked, "*")
	chosen = cmp.Or(chosen, "none of them")
	fetch.Decided(ctx, "candidates: %s; '%s' selects %s", listed, asked, chosen)
}

func (p *reconciliation) decideReuse(ctx context.Context) {
	if stored := p.stored(); p.out.Reused && stored != nil {
		fetch.Decided(ctx, "stored: %s is what this run would store, and stays", stored.Path)
	}
}
