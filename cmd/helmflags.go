package cmd

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
)

// helmOptions say which helm renders, and how.
type helmOptions struct{ foresee.HelmOptions }

func (o *helmOptions) add(fs *pflag.FlagSet) {
	o.Memory = 1 << 30
	fs.StringVar(&o.Program, "helm", "", "helm `program` (default: the one in the PATH)")
	fs.DurationVar(&o.Time, "helm-timeout", 30*time.Second, "`limit` of rendering one release")
	fs.Var((*config.Bytes)(&o.Memory), "helm-max-memory", "most memory that rendering one release may need, in `bytes` or as a quantity")
	fs.StringVar(&o.KubeVersion, "kube-version", "", "`version` of Kubernetes that charts see (default: that of helm)")
	fs.StringArrayVar(&o.APIVersions, "api-versions", nil, "API `version` or kind that charts see besides those of Kubernetes, such as monitoring.coreos.com/v1 (repeatable)")
}

func (o *helmOptions) check() error {
	if o.Time <= 0 {
		return exit.Usagef("--helm-timeout must be positive, got %s", o.Time)
	}
	return nil
}
