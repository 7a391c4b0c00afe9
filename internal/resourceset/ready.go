package resourceset

import "github.com/helmsrc/helmsrc/internal/cel"

// Dependency is an object that a set waits for. What the expression says of it is for a cluster to find out.
type Dependency struct {
	Ready     bool   `json:"ready"`
	ReadyExpr string `json:"readyExpr"`
}

// checkReadiness refuses expressions that the operator cannot parse: the set would wait for ever.
func (s *Set) checkReadiness() error {
	for i, d := range s.Spec.DependsOn {
		if !d.Ready || d.ReadyExpr == "" {
			continue
		}
		err := s.Budget.spendSteps(1 + len(d.ReadyExpr)/parseLen)
		if err == nil {
			err = cel.Check(d.ReadyExpr)
		}
		if err != nil {
			return &Error{Path: []any{"spec", "dependsOn", i, "readyExpr"}, Err: err}
		}
	}
	return nil
}
