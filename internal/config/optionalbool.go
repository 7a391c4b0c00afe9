package config

import "strconv"

// OptionalBool is the value of a boolean flag that may be left open.
type OptionalBool struct {
	Given, True bool
}

func (b *OptionalBool) String() string {
	if !b.Given {
		return ""
	}
	return strconv.FormatBool(b.True)
}

func (b *OptionalBool) Type() string { return "bool" }

func (b *OptionalBool) Set(text string) error {
	value, err := strconv.ParseBool(text)
	if err != nil {
		return err
	}
	b.Given, b.True = true, value
	return nil
}
