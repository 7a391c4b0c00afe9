package cmd

import (
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/render"
)

// renderOptions say what kustomizations and variables become.
type renderOptions struct {
	substitute []string
	strict     config.OptionalBool
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

// unset is what becomes of a variable without a value.
func (o *renderOptions) unset() render.Unset {
	switch {
	case !o.strict.Given:
		return render.UnsetDecides
	case o.strict.True:
		return render.UnsetFails
	}
	return render.UnsetEmpty
}
