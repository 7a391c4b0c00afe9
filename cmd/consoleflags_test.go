package cmd

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
)

// TestWhenThereAreRowsAndColours varies the terminal, the flags and the environment.
func TestWhenThereAreRowsAndColours(t *testing.T) {
	for _, test := range []struct {
		name        string
		terminal    bool
		args        []string
		environment map[string]string
		rows, color bool
	}{
		{"a terminal", true, nil, nil, true, true},
		{"none", false, nil, nil, false, false},
		{"NO_COLOR", true, nil, map[string]string{"NO_COLOR": "1"}, true, false},
		{"an empty NO_COLOR", true, nil, map[string]string{"NO_COLOR": ""}, true, true},
		{"TERM=dumb", true, nil, map[string]string{"TERM": "dumb"}, false, false},
		{"--color=never", true, []string{"--color=never"}, nil, true, false},
		{"--color=always without a terminal", false, []string{"--color=always"}, nil, false, true},
		{"--color=always beats NO_COLOR", true, []string{"--color=always"}, map[string]string{"NO_COLOR": "1"}, true, true},
		{"--no-progress", true, []string{"--no-progress"}, nil, false, true},
		{"-q", true, []string{"-q"}, nil, false, true},
		{"--log-format json", true, []string{"--log-format=json"}, nil, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			addConsoleFlags(fs)
			if err := fs.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			o, err := consoleOptions(fs, config.Origins{}, &Env{
				Getenv:   func(name string) string { return test.environment[name] },
				Terminal: func() (int, int, bool) { return 80, 24, test.terminal },
				Now:      time.Now,
			})
			if err != nil {
				t.Fatal(err)
			}
			if rows := o.Rows != nil; rows != test.rows || o.Color != test.color {
				t.Errorf("rows %t, colours %t, want %t and %t", rows, o.Color, test.rows, test.color)
			}
		})
	}
}

// TestLocaleOfTerminal: a locale without UTF-8 limits tables to ASCII.
func TestLocaleOfTerminal(t *testing.T) {
	for locale, want := range map[string]bool{"": false, "C": true, "POSIX": true, "en_US.UTF-8": false, "de_DE.utf8": false, "en_US.ISO-8859-1": true} {
		if got := notUTF8(func(name string) string { return map[string]string{"LANG": locale}[name] }); got != want {
			t.Errorf("%q: %t", locale, got)
		}
	}
}
