package program

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// documents reads the objects of a file, without events.
func documents(ts *testscript.TestScript, file string) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+ts.ReadFile(file), "\n---") {
		var u unstructured.Unstructured
		ts.Check(yaml.Unmarshal([]byte(doc), &u.Object))
		if len(u.Object) > 0 && u.GetKind() != "Event" {
			list = append(list, &u)
		}
	}
	if len(list) == 0 {
		ts.Fatalf("no documents in %s", file)
	}
	return list
}

// kstatusOf returns the status that the real kstatus library computes for a document.
func kstatusOf(ts *testscript.TestScript, u *unstructured.Unstructured) string {
	res, err := status.Compute(u)
	ts.Check(err)
	return string(res.Status)
}

// cmdKstatus compares the statuses that kstatus computes.
func cmdKstatus(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 1, "kstatus file [kind/]name=status... | kstatus file status")
	got := map[string]string{}
	for _, u := range documents(ts, args[0]) {
		s := kstatusOf(ts, u)
		got[u.GetKind()+"/"+u.GetName()], got[u.GetName()] = s, s
	}
	for _, want := range args[1:] {
		object, state, one := strings.Cut(want, "=")
		if one && got[object] != state {
			ts.Fatalf("%s is %q to kstatus, want %s", object, got[object], state)
		}
		for name, s := range got {
			if !one && s != want {
				ts.Fatalf("%s is %s to kstatus, want %s", name, s, want)
			}
		}
	}
}

// cmdConditions prints a line for each document: the status by kstatus, the conditions with their reasons, and the observed
// generation, without messages.
func cmdConditions(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "conditions file")
	out := ts.Stdout()
	for _, u := range documents(ts, args[0]) {
		line := []string{u.GetKind() + "/" + u.GetName(), kstatusOf(ts, u) + ":"}
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		ts.Check(err)
		for _, c := range conditions {
			line = append(line, conditionWord(c))
		}
		if generation, ok, err := unstructured.NestedFieldNoCopy(u.Object, "status", "observedGeneration"); ok && err == nil {
			line = append(line, fmt.Sprint(generation))
		}
		fmt.Fprintln(out, strings.Join(line, " "))
	}
}

func conditionWord(c any) string {
	m, ok := c.(map[string]any)
	if !ok {
		return "?"
	}
	return fmt.Sprintf("%v=%v/%v", m["type"], m["status"], m["reason"])
}
