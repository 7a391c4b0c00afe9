package cmd

import (
	"strconv"

	"github.com/helmsrc/helmsrc/internal/render"
)

// strictness is a boolean that may be left open.
type strictness struct {
	given, strict bool
}

func (s *strictness) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatBool(s.strict)
}

func (s *strictness) Type() string { return "bool" }

func (s *strictness) Set(text string) error {
	strict, err := strconv.ParseBool(text)
	if err != nil {
		return err
	}
	s.given, s.strict = true, strict
	return nil
}

// unset is what becomes of a variable without a value.
func (s *strictness) unset() render.Unset {
	switch {
	case !s.given:
		return render.UnsetDecides
	case s.strict:
		return render.UnsetFails
	}
	return render.UnsetEmpty
}
