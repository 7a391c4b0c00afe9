package cmd

import "testing"

func TestProgramName(t *testing.T) {
	for arg0, want := range map[string]string{
		"helmsrc": "helmsrc", "/usr/local/bin/helmsrc": "helmsrc", "./helmsrc": "helmsrc", "helmsrc.exe": "helmsrc", "HELMSRC.EXE": "HELMSRC",
		"flux-helmsrc": "flux helmsrc", "/home/me/.fluxcd/plugins/flux-helmsrc.exe": "flux helmsrc", "flux-": "flux-", "kubectl-helmsrc": "kubectl helmsrc",
		"helmsrc-1.2": "helmsrc-1.2", "": "helmsrc", "/": "helmsrc", "two words": "helmsrc", "line\nbreak": "helmsrc",
	} {
		if got := programName(arg0); got != want {
			t.Errorf("%q is called %q, want %q", arg0, got, want)
		}
	}
}
