package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestServiceAccount(t *testing.T) {
	for _, tt := range []struct{ name, rest, want, err string }{
		{"nothing", "", "[]", ""},
		{"null", "imagePullSecrets:", "[]", ""},
		{"two, and what is empty", "imagePullSecrets: [{name: a}, {}, {name: ''}, {name: b}]", "[a b]", ""},
		{"whatever else there is", "secrets: 5\nautomountServiceAccountToken: 'x'\nimagePullSecrets: [{name: a, kind: x}]", "[a]", ""},
		{"no list", "imagePullSecrets: {name: a}", "", "f.yaml:5:1: ServiceAccount default/s: imagePullSecrets must be a list"},
		{"no objects", "imagePullSecrets: [a]", "", "f.yaml:5:20: ServiceAccount default/s: imagePullSecrets[0] must be an object with a name"},
		{"no name", "imagePullSecrets: [{name: 5}]", "", "f.yaml:5:21: ServiceAccount default/s: imagePullSecrets[0].name must be a string"},
		{"many", "imagePullSecrets: [" + strings.Repeat("{name: a}, ", maxPullSecrets) + "{name: a}]", "",
			"f.yaml:5:1: ServiceAccount default/s: imagePullSecrets has more than 100 entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSet("")
			// A malformed account without a reference to it is not an error.
			if err := s.Add("f.yaml", []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: s\n"+tt.rest+"\n")); err != nil {
				t.Fatal(err)
			}
			if n := len(s.Objects()); n > 0 {
				t.Errorf("%d objects to reconcile", n)
			}
			a, err := s.ServiceAccount("default", "s")
			if tt.err != "" {
				if fmt.Sprint(err) != tt.err {
					t.Errorf("error %v\n want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(a.ImagePullSecrets); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestServiceAccountNotFound(t *testing.T) {
	s := NewSet("")
	// A Secret of the same name does not count.
	if err := s.Add("f.yaml", []byte(secretDoc("s", ""))); err != nil {
		t.Fatal(err)
	}
	_, err := s.ServiceAccount("default", "s")
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Kind != "ServiceAccount" {
		t.Errorf("got %v", err)
	}
}
