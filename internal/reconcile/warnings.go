package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Warning is something unusual about an object that is not a failure.
type Warning struct {
	Code finding.Code // a separate code for a warning that users may want to silence, else the code of the finding
	Text string
	Path []any // of the field; nil for the usual field of the code
	Err  error // with advice in its hints; usually nil
}

// remarks holds the warnings and debug messages of an object. A warning that validate also reports has the same code and
// position there: one comment silences both.
type remarks struct {
	Warnings []Warning
	Debug    []string
}

func (w *remarks) debugf(format string, args ...any) {
	w.Debug = append(w.Debug, fmt.Sprintf(format, args...))
}

func (w *remarks) warnAs(code finding.Code, format string, args ...any) {
	w.Warnings = append(w.Warnings, Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

func (w *remarks) warnAt(code finding.Code, text string, path ...any) {
	w.Warnings = append(w.Warnings, Warning{Code: code, Text: text, Path: path})
}

// warnWithheld reports a credential of the environment that is not used, if there is one.
func (w *remarks) warnWithheld(err error) {
	withheld, ok := errors.AsType[*auth.WithheldError](err)
	if !ok {
		return
	}
	field := map[string]string{"http": "url", "insecure-skip-tls-verify": "url"}[withheld.By]
	w.Warnings = append(w.Warnings, Warning{finding.WithheldLogin, err.Error(), []any{"spec", cmp.Or(field, withheld.By)}, err})
}

// warnOnce adds warnings. A login that is withheld from a registry is reported once, however many dependencies come from it.
func (w *remarks) warnOnce(more []Warning) {
	for _, m := range more {
		same := func(x Warning) bool { return x.Code == m.Code && x.Text == m.Text }
		if m.Code != finding.WithheldLogin || !slices.ContainsFunc(w.Warnings, same) {
			w.Warnings = append(w.Warnings, m)
		}
	}
}

func (w *remarks) warnEach(code finding.Code, texts []string) {
	for _, text := range texts {
		w.warnAt(code, text)
	}
}

func (w *remarks) collectWarnings(ctx context.Context) context.Context {
	return fetch.With(ctx, func(err error) {
		if is[*auth.WithheldError](err) {
			w.warnOnce([]Warning{{Code: finding.WithheldLogin, Text: err.Error(), Err: err}})
			return
		}
		code := finding.OddSource
		if is[*fetch.UncheckedError](err) || is[*fetch.DigestError](err) {
			code = finding.AcceptedChart
		}
		w.warnAt(code, err.Error())
	})
}

// warnSecrets adds the warnings about Secrets.
func (w *remarks) warnSecrets(warned []credential.Warning) {
	for _, o := range warned {
		w.warnAt(o.Code, o.Text, o.Path...)
	}
}
