package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// renderOptions say what kustomizations and variables become.
type renderOptions struct {
	substitute []string
	strict     strictness
	sources    []string // those of --source, for commands that have it
}

func (o *renderOptions) add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.substitute, "substitute", nil, "value of a variable ${KEY} in the manifests: `KEY=VALUE` (repeatable); wins over spec.postBuild")
	fs.Var(&o.strict, "substitute-strict", "a variable without a value is an error; false makes it empty (default: an error where it decides a chart, version, URL, name or reference, elsewhere empty with a warning)")
	fs.Lookup("substitute-strict").NoOptDefVal = "true"
}

// addSources is for the commands that fetch nothing.
func (o *renderOptions) addSources(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.sources, "source", nil, "local directory of a source that Kustomizations refer to: `KIND/[NAMESPACE/]NAME=PATH` (repeatable)")
}

// renderOptions are the choices for kustomizations and variables.
func (a *app) renderOptions(o *inputOptions) (render.Options, error) {
	variables := map[string]string{}
	for _, text := range o.render.substitute {
		key, value, found := strings.Cut(text, "=")
		if !found || !render.ValidName(key) {
			// The value may be a password and is not printed.
			return render.Options{}, usagef("--substitute: not of the form KEY=VALUE, with letters, digits and _ in the key")
		}
		variables[key] = value
	}
	var sources []render.Source
	for _, text := range o.render.sources {
		s, dir, err := parseSource(text)
		if err != nil {
			return render.Options{}, err
		}
		sources = append(sources, render.Source{Kind: s.kind, Namespace: s.namespace, Name: s.name, Dir: dir})
	}
	return render.Options{
		Variables: variables,
		Unset:     o.render.strict.unset(),
		Tolerant:  o.validating,
		Admit: func(obj *manifest.Object) error {
			if obj.Group() == manifest.OperatorGroup {
				return admission.Operator(obj)
			}
			_, err := admission.Admit(obj)
			return err
		},
		Sources:   sources,
		Untrusted: o.untrusted,
		Namespace: o.defaultNamespace,
		Getenv:    a.env.Getenv,
		Secrets:   a.console.Secrets(),
	}, nil
}

// reportRendered prints what the renderer has to say, but what validate judges with the
// rest.
func (a *app) reportRendered(in *input) {
	for _, obj := range in.rendered.Judged {
		in.ignores.Add(obj.Kind, obj.Namespace, obj.Name, obj.Ignores())
	}
	for _, r := range in.rendered.Rejections {
		a.reject(in, r.Object, r.Err)
	}
	var reported []finding.Finding
	for _, n := range in.rendered.Notices {
		f := validate.New(n.Object, n.Code, n.Text, n.Hint, n.Excerpt)
		if n.Code == finding.OutsideLink && !in.once("link "+n.Excerpt.Pos.File) {
			continue
		}
		at := console.SubjectOf(f)
		switch {
		case n.Debug:
			a.console.Debug(at, n.Text)
			continue
		case n.Code == "":
			if in.once(fmt.Sprint(at, n.Text)) {
				a.console.Info(at, n.Text)
			}
			continue
		}
		if n.Object != nil {
			in.ignores.Add(n.Object.Kind, n.Object.Namespace, n.Object.Name, n.Object.Ignores())
		}
		if in.validating {
			in.found = append(in.found, f)
		} else if !a.console.Silenced(&in.ignores, f) {
			reported = append(reported, f)
		}
	}
	a.console.ReportAlike(reported, true)
}
