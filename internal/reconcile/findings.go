package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Warning returns a warning of the run as a finding.
func (r *Result) Warning(w Warning) finding.Finding {
	if w.Path != nil {
		return validate.At(r.Object.Object, w.Code, w.Text, finding.Hints(w.Err), w.Path...)
	}
	return r.finding(w.Code, w.Text, nil)
}

// FailureFinding returns the failure of an object as a finding, and false if it has no failure.
func (r *Result) FailureFinding() (finding.Finding, bool) {
	switch {
	case r.Failure == nil:
		return finding.Finding{}, false
	case r.State == Interrupted:
		return r.finding(finding.Interrupted, r.Failure.Message, nil), true
	}
	by, message := r.BlockedBy(), cmp.Or(r.Failure.Detail, r.Failure.Message)
	if cycle, ok := errors.AsType[*inventory.CycleError](r.Failure); ok && by == (finding.Object{}) {
		message = cycle.Error() // the same text for all members
	}
	f := r.finding(CodeOf(r.Failure), message, r.Failure)
	f.Severity = finding.Error // also where validate would only warn
	f.Cause = r.cause()
	if offline, ok := errors.AsType[*fetch.OfflineError](r.Failure); ok {
		f.Missing = offline.What
	}
	f.BlockedBy = by
	if f.Code == finding.MissingSecret && (f.Kind == sourcev1.GitRepositoryKind || f.Kind == sourcev1.BucketKind) {
		f.Fix += "; or replace it by a directory: " + finding.StandIn(f.Kind, f.Namespace, f.Name)
	}
	f.Fix = strings.Join(append([]string{f.Fix}, unresolvedHints(r.Object.Object)...), "; ")
	return f, true
}

// SuspensionFinding returns the error of a suspended object that other objects need, and that has no artifact for them.
func (r *Result) SuspensionFinding() finding.Finding {
	return validate.At(r.Object.Object, finding.SourceNotReady, "suspended, and "+r.whenFetched(), finding.Hints(suspended(r)), "spec", "suspend")
}

// unresolvedHints names the variables that a Flux Kustomization would have replaced: an object with unresolved variables
// rarely fails for another reason. If the object is open, a warning has already named them.
func unresolvedHints(obj *manifest.Object) []string {
	if obj.Open {
		return nil
	}
	var hints []string
	for _, v := range obj.Unresolved() {
		hints = append(hints, fmt.Sprintf("${%s} at %s is a variable without a value", v.Name, v.Pos))
	}
	return hints
}

func (r *Result) finding(code finding.Code, message string, err error) finding.Finding {
	obj := r.Object.Object
	return validate.At(obj, code, message, finding.Hints(err), pathOf(obj, code, err)...)
}

// pathOf returns the path of the field that caused a failure: the first
// candidate field that the object has.
func pathOf(obj *manifest.Object, code finding.Code, err error) []any {
	if inventory.IsRelease(obj) && code != finding.SourceNotReady && validate.ReleaseField(err) != nil {
		return validate.ReleaseField(err)
	}
	if path := finding.PathOf(err); path != nil && code != finding.SourceNotReady {
		return path
	}
	if path := referencePath(obj, err); path != nil {
		return path
	}
	for _, field := range append(fieldsOf(code), "spec.url", "spec.endpoint", "spec.chart.spec.chart", "spec.chart", "spec.chartRef", "spec") {
		path := steps(field)
		if manifest.ValueAt(obj.Content, path) != nil {
			return path
		}
	}
	return nil
}

// fieldsOf returns the fields that usually cause a kind of failure.
func fieldsOf(code finding.Code) []string {
	var fields []string
	switch code {
	case finding.NoMatch, finding.MalformedVersion:
		fields = []string{"version", "ref", "chart"}
	case finding.UnknownChart, finding.InvalidChartName:
		fields = []string{"chart"}
	case finding.ValuesFiles:
		fields = []string{"valuesFiles"}
	case finding.MissingSource, finding.UnusableSource, finding.SourceNotReady:
		fields = []string{"sourceRef.name", "chartRef.name"}
	case finding.GitReference:
		fields = []string{"ref"}
	case finding.UselessVerify, finding.NotVerified, finding.Unsigned, finding.SignatureFailed, finding.Unverifiable, finding.GitUnsigned:
		fields = []string{"verify"}
	case finding.IncompleteLogin, finding.NoRegistryLogin:
		fields = []string{"secretRef.name"}
	case finding.BrokenTLS:
		fields = []string{"certSecretRef.name"}
	case finding.ProxySecret:
		fields = []string{"proxySecretRef.name"}
	case finding.NotSupported:
		fields = []string{"provider"}
	case finding.InvalidReference:
		fields = []string{"ref.digest", "ref.tag"}
	case finding.FirstLayer, finding.UnusableLayer:
		fields = []string{"layerSelector"}
	case finding.DependencyCycle:
		fields = []string{"include", "dependsOn", "sources"}
	}
	var all []string
	for _, field := range fields {
		all = append(all, "spec."+field, "spec.chart.spec."+field)
	}
	return all
}

func referencePath(obj *manifest.Object, err error) []any {
	name := ""
	var missing *manifest.NotFoundError
	var broken *manifest.SecretError
	switch {
	case errors.As(err, &missing) && missing.Kind == "Secret":
		name = missing.Name
	case errors.As(err, &broken):
		name = broken.Name
	default:
		return nil
	}
	for _, field := range credentialFields() {
		path := append(steps(field), "name")
		if manifest.ValueAt(obj.Content, path) == name {
			return path
		}
	}
	return nil
}

// credentialFields returns the fields that name a Secret.
func credentialFields() []string {
	return []string{"spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef", "spec.verify.secretRef", "spec.verify.trustedRootSecretRef", "spec.sts.secretRef", "spec.sts.certSecretRef"}
}

func steps(field string) []any {
	var path []any
	for step := range strings.SplitSeq(field, ".") {
		path = append(path, step)
	}
	return path
}

// cause returns a text that is equal for failures of the same server: it cannot be reached, or answers no request.
// It is "" for a failure that may concern the object alone.
func (r *Result) cause() string {
	code, why := CodeOf(r.Failure), ""
	switch code {
	case finding.Offline:
	case finding.Unreachable, finding.Certificate, finding.TimedOut, finding.ServerError:
		why = innermost(r.Failure)
	default:
		return ""
	}
	host := hostOf(r.Failure)
	if host == "" {
		return ""
	}
	return string(code) + " " + host + " " + why
}

// innermost returns the text of the innermost error of a chain, which names no object.
func innermost(err error) string {
	if answer, ok := errors.AsType[*fetch.StatusError](err); ok {
		return answer.Status
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// hostOf returns the server that a failure names, "" if it names no server.
func hostOf(err error) string {
	address := ""
	if answer, ok := errors.AsType[*fetch.StatusError](err); ok {
		address = answer.URL
	} else if request, ok := errors.AsType[*url.Error](err); ok {
		address = request.URL
	} else if offline, ok := errors.AsType[*fetch.OfflineError](err); ok {
		address = offline.Address()
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	if dialled, ok := errors.AsType[*net.OpError](err); ok && dialled.Addr != nil {
		return dialled.Addr.String()
	}
	return ""
}
