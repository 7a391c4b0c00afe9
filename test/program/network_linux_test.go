package program

import (
	"strings"
	"syscall"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

const networkRelease = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec: {interval: 5m, url: "http://repo.test"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: apps}
spec: {interval: 5m, chart: {spec: {chart: app, version: 1.0.0, sourceRef: {kind: HelmRepository, name: repo}}}}
`

// TestNetworkRefused simulates a kernel that gives helm no namespace without a network: this is a warning for untrusted
// manifests and without a connection, a line with -v otherwise. A kernel without user namespaces refuses by itself, and then
// the run of an ordinary user shows it.
func TestNetworkRefused(t *testing.T) {
	t.Parallel()
	helm, err := helmtest.Helm()
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, "app 1.0.0\n")
	s.write("all.yaml", networkRelease)
	template := "helmsrc template -f all.yaml --helm " + helm
	refuse := "echo 0 >/proc/sys/user/max_net_namespaces || exit 99\nexec "
	if _, err := s.apart(0, refuse+"true"); err != nil {
		t.Log("no namespace of users:", err)
		refuse = "exec "
	}
	run := func(before, flags string) string {
		t.Helper()
		out, err := s.shellIn(before != "exec ", before+template+flags)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	const line = ": helm can use the network of this machine: no namespace without network could be created\n"
	refused := refuse != "exec " || !helmtest.Networkless()
	for flags, want := range map[string]string{"": "", " -v": "debug" + line, " --offline": "warning" + line} {
		if flags == " --offline" {
			run(refuse, "")
		}
		out := run(refuse, flags)
		if got := strings.Contains(out, line); got != (refused && want != "") || got && !strings.Contains(out, want) {
			t.Errorf("%q: %s", flags, out)
		}
	}
	if out := run("exec ", " --offline"); strings.Contains(out, line) == helmtest.Networkless() {
		t.Error(out)
	}
}

// shellIn runs commands of a shell, apart or not.
func (s *stage) shellIn(apart bool, commands string) ([]byte, error) {
	if apart {
		return s.apart(0, commands)
	}
	cmd := s.command()
	cmd.Path, cmd.Args, cmd.Err = "/bin/sh", []string{"sh", "-ec", commands}, nil
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd.CombinedOutput()
}
