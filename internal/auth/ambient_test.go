package auth_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// TestMain turns this program into a credential helper when it is called by the name of one.
func TestMain(m *testing.M) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if helper, ok := strings.CutPrefix(name, "docker-credential-"); ok {
		os.Exit(beHelper(helper))
	}
	os.Exit(m.Run())
}

func beHelper(name string) int {
	host, _ := io.ReadAll(os.Stdin)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 99
	}
	fmt.Fprintf(log, "%s %s %s\n", name, strings.Join(os.Args[1:], " "), host)
	_ = log.Close()
	switch name {
	case "good":
		fmt.Printf(`{"ServerURL": %q, "Username": "helper", "Secret": "canary-helper"}`, host)
	case "token":
		fmt.Print(`{"Username": "<token>", "Secret": "canary-identity"}`)
	case "empty":
		fmt.Println("credentials not found in native keychain")
		return 1
	case "broken":
		fmt.Println("canary-output: something went wrong")
		fmt.Fprintln(os.Stderr, "canary-stderr")
		return 3
	case "garbage":
		fmt.Print("canary-output")
	case "chatty":
		fmt.Print(strings.Repeat("x", 1<<20))
	case "slow":
		time.Sleep(time.Hour)
	}
	return 0
}

// helpers makes a directory with this program under the names of helpers.
func helpers(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file := filepath.Join(dir, "docker-credential-"+name)
		if runtime.GOOS == "windows" {
			file += ".exe"
		}
		if err := os.Link(self, file); err == nil {
			continue
		}
		program, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, program, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func write(t *testing.T, content string, elem ...string) string {
	t.Helper()
	file := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func user(name string, hosts ...string) string {
	var entries []string
	for _, host := range hosts {
		entries = append(entries, fmt.Sprintf(`%q: {"username": %q, "password": "canary-file"}`, host, name))
	}
	return `{"auths": {` + strings.Join(entries, ", ") + `}}`
}

func TestAmbientFiles(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	helm := write(t, user("helm", "a.test"), dir, "helm", "registry", "config.json")
	docker := write(t, user("docker", "a.test", "b.test"), dir, "docker", "config.json")
	authFile := write(t, user("podman", "a.test", "b.test", "c.test"), dir, "auth.json")
	runtimeFile := write(t, user("runtime", "c.test"), dir, "run", "containers", "auth.json")
	homeDocker := write(t, user("home", "d.test"), home, ".docker", "config.json")
	write(t, "", home, ".config", "containers", "auth.json") // empty is no login
	other := write(t, user("other", "a.test"), dir, "other.json")

	homeVar := "HOME"
	if runtime.GOOS == "windows" {
		homeVar = "USERPROFILE"
	}
	all := []string{"HELM_CONFIG_HOME", filepath.Join(dir, "helm"), "DOCKER_CONFIG", filepath.Join(dir, "docker"), "REGISTRY_AUTH_FILE", authFile,
		"XDG_RUNTIME_DIR", filepath.Join(dir, "run"), homeVar, home}
	for _, test := range []struct {
		name   string
		env    []string
		config string
		host   string
		want   string
	}{
		{"helm's first", all, "", "a.test", helm},
		{"then docker's", all, "", "b.test", docker},
		{"then REGISTRY_AUTH_FILE", all, "", "c.test", authFile},
		{"which hides the others of its kind", all[:8], "", "c.test", authFile},
		{"no home docker config beside DOCKER_CONFIG", all, "", "d.test", ""},
		{"home docker config", []string{homeVar, home}, "", "d.test", homeDocker},
		{"runtime directory", all[6:8], "", "c.test", runtimeFile},
		{"HELM_REGISTRY_CONFIG", append([]string{"HELM_REGISTRY_CONFIG", other}, all...), "", "a.test", other},
		{"the file that was named, alone", all, other, "a.test", other},
		{"nothing else beside it", all, other, "b.test", ""},
		{"no environment", nil, "", "a.test", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment(test.env...), RegistryConfig: test.config})
			got, err := a.Login(t.Context(), test.host, "org/chart")
			if err != nil || got.Problem != nil {
				t.Fatal(err, got.Problem)
			}
			if got.Source != test.want || got.Credential.IsZero() != (test.want == "") {
				t.Errorf("from %q, want %q", got.Source, test.want)
			}
		})
	}
}

// TestAmbientWithheld: only a host that has a login misses it over plain HTTP.
func TestAmbientWithheld(t *testing.T) {
	file := write(t, user("a", "a.test"), t.TempDir(), "config.json")
	for host, by := range map[string]string{"a.test": "http", "b.test": ""} {
		a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment(), RegistryConfig: file})
		login, err := auth.LoginBy(t.Context(), a, auth.NewRoute(&url.URL{Scheme: "http", Host: host}, nil, nil), "x")
		if err != nil || !login.Credential.IsZero() {
			t.Errorf("%s: %v, %v", host, login.Source, err)
		}
		wantWithheld(t, login.Problem, by)
	}
}

func TestAmbientFileProblems(t *testing.T) {
	dir := t.TempDir()
	broken := write(t, `{"auths": canary`, dir, "broken.json")
	bad := write(t, `{"auths": {"a.test": {"auth": "canary"}}}`, dir, "bad.json")
	for _, test := range []struct{ name, file, problem, failure string }{
		{"not JSON is a problem only", broken, "cannot read the registry logins in " + broken + ": invalid JSON at byte", ""},
		{"a file that was named and is not there", filepath.Join(dir, "none.json"), "none.json", ""},
		{"an entry for this host that cannot be read", bad, "", "login for 'a.test' in " + bad + ": its auth field"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment(), RegistryConfig: test.file})
			got, err := a.Login(t.Context(), "a.test", "x")
			if text := fmt.Sprint(err); (err != nil) != (test.failure != "") || !strings.Contains(text, test.failure) || strings.Contains(text, "canary") {
				t.Errorf("error %v, want %q", err, test.failure)
			}
			if text := fmt.Sprint(got.Problem); (got.Problem != nil) != (test.problem != "") || !strings.Contains(text, test.problem) || strings.Contains(text, "canary") {
				t.Errorf("problem %v, want %q", got.Problem, test.problem)
			}
		})
	}
}

func TestAmbientHelpers(t *testing.T) {
	bin := helpers(t, "good", "token", "empty", "broken", "garbage", "chatty", "slow")
	for _, test := range []struct {
		name, config, source, problem, failure string
	}{
		{"for this host", `{"credHelpers": {"a.test": "good"}, "credsStore": "broken"}`, "docker-credential-good", "", ""},
		{"for all hosts", `{"credsStore": "good", "auths": {"a.test": {}}}`, "docker-credential-good", "", ""},
		{"identity token", `{"credsStore": "token"}`, "docker-credential-token", "", ""},
		{"for another host", `{"credHelpers": {"b.test": "good"}}`, "", "", ""},
		{"has no login, the file has", `{"credsStore": "empty", "auths": {"a.test": {"username": "u", "password": "p"}}}`, "FILE", "", ""},
		{"fails for all hosts", `{"credsStore": "broken"}`, "", "docker-credential-broken: exit status 3", ""},
		{"fails for this host", `{"credHelpers": {"a.test": "broken"}}`, "", "", "docker-credential-broken: exit status 3"},
		{"prints no JSON", `{"credHelpers": {"a.test": "garbage"}}`, "", "", "docker-credential-garbage: its answer is not the JSON"},
		{"prints too much", `{"credHelpers": {"a.test": "chatty"}}`, "", "", "docker-credential-chatty: printed more than 65536 bytes"},
		{"hangs", `{"credHelpers": {"a.test": "slow"}}`, "", "", "docker-credential-slow: did not answer in time"},
		{"is not installed", `{"credHelpers": {"a.test": "missing"}}`, "", "", "docker-credential-missing: not found on PATH"},
		{"is a path", `{"credHelpers": {"a.test": "../../x"}}`, "", "", "not a valid name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := write(t, test.config, t.TempDir(), "config.json")
			timeout := time.Minute
			if test.name == "hangs" {
				timeout = 200 * time.Millisecond
			}
			path := "relative" + string(filepath.ListSeparator) + t.TempDir() + string(filepath.ListSeparator) + bin
			a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment("PATH", path), RegistryConfig: file, HelperTimeout: timeout})
			got, err := a.Login(t.Context(), "a.test", "x")
			if text := fmt.Sprint(err); (err != nil) != (test.failure != "") || !strings.Contains(text, test.failure) || strings.Contains(text, "canary") {
				t.Errorf("error %v, want %q", err, test.failure)
			}
			if text := fmt.Sprint(got.Problem); (got.Problem != nil) != (test.problem != "") || !strings.Contains(text, test.problem) || strings.Contains(text, "canary") {
				t.Errorf("problem %v, want %q", got.Problem, test.problem)
			}
			if want := strings.Replace(test.source, "FILE", file, 1); got.Source != want {
				t.Errorf("from %q, want %q", got.Source, want)
			}
		})
	}
}

func TestAmbientHelperRunsOncePerHost(t *testing.T) {
	bin := helpers(t, "good")
	file := write(t, `{"credsStore": "good"}`, t.TempDir(), "config.json")
	a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment("PATH", bin), RegistryConfig: file})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			host := []string{"a.test", "registry-1.docker.io"}[i%2]
			if got, err := a.Login(t.Context(), host, fmt.Sprint("chart", i)); err != nil || got.Credential.IsZero() {
				t.Error(got, err)
			}
		})
	}
	all.Wait()
	log, err := os.ReadFile(filepath.Join(bin, "log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if len(lines) != 2 || !strings.Contains(string(log), "good get a.test") || !strings.Contains(string(log), "good get https://index.docker.io/v1/") {
		t.Errorf("helper was called so: %q", lines)
	}
}

func TestAmbientHelperIsInterrupted(t *testing.T) {
	bin := helpers(t, "slow")
	file := write(t, `{"credHelpers": {"a.test": "slow"}}`, t.TempDir(), "config.json")
	a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment("PATH", bin), RegistryConfig: file})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Login(ctx, "a.test", "x"); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
}

func TestAmbientHelperInTheWorkingDirectory(t *testing.T) {
	bin := helpers(t, "good")
	t.Chdir(filepath.Dir(bin))
	file := write(t, `{"credHelpers": {"a.test": "good"}}`, t.TempDir(), "config.json")
	list := string(filepath.ListSeparator)
	for _, path := range []string{filepath.Base(bin), "", list + "." + list} {
		a := auth.NewAmbient(auth.AmbientOptions{Getenv: environment("PATH", path), RegistryConfig: file})
		if got, err := a.Login(t.Context(), "a.test", "x"); err == nil {
			t.Errorf("PATH %q: %v", path, got)
		}
	}
}
