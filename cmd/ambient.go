package cmd

import (
	"fmt"
	"strconv"

	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// ambientPolicy is the value of --ambient-credentials, which was a boolean once and takes what a boolean takes.
type ambientPolicy string

const (
	ambientHome     ambientPolicy = "true"  // by the environment's ways
	ambientNone     ambientPolicy = "false" // not at all
	ambientAnywhere ambientPolicy = "anywhere"

	// ambientType is its type for the configuration file and its schema.
	ambientType = "boolOrAnywhere"
)

func (p *ambientPolicy) String() string { return string(*p) }

func (p *ambientPolicy) Type() string { return ambientType }

func (p *ambientPolicy) Set(text string) error {
	if text == string(ambientAnywhere) {
		*p = ambientAnywhere
		return nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is not one of true, false, anywhere", text)
	}
	*p = ambientNone
	if b {
		*p = ambientHome
	}
	return nil
}

// reach is how far the credentials of this machine may go.
func (o *runOptions) reach() reconcile.Reach {
	switch {
	case o.input.Untrusted:
		return reconcile.ReachNowhere
	case o.ambient == ambientAnywhere:
		return reconcile.ReachAnywhere
	}
	return reconcile.ReachHome
}
