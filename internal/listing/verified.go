package listing

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/table"
)

// Verification is a record of verify's output.
type Verification struct {
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Result    string `json:"result"`
	Format    string `json:"format,omitempty"`
	SignedBy  string `json:"signedBy,omitempty"`
	Key       string `json:"key,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
	LogIndex  *int64 `json:"logIndex,omitempty"`
	SignedAt  string `json:"signedAt,omitempty"`
	Error     string `json:"error,omitempty"`

	Signatures []gitSignature `json:"signatures,omitempty"` // of a GitRepository, whose version is its revision
}

type gitSignature struct {
	Object string `json:"object"`
	Name   string `json:"name"`
	Format string `json:"format"`
	Key    string `json:"key"`
}

// The results of a verification.
const (
	resultVerified   = "verified"
	resultUnverified = "not verified"
	resultFailed     = "failed"
)

// Verifications returns records of results. If joined, a release and its HelmChart have one record.
func Verifications(results []*reconcile.Result, joined bool) []Verification {
	var list []Verification
	charts := map[*manifest.Object]*reconcile.Result{} // by their releases, which share a row with them
	if joined {
		charts = chartsOfReleases(results)
	}
	for _, r := range results {
		obj := r.Object.Object
		shown := r
		if chart := charts[obj]; chart != nil && (r.Failure == nil || chart.Failure != nil) {
			shown = chart
		}
		if charts[obj.Origin] != nil || shown.Resolution == nil && shown.Failure == nil && shown.Signed == nil {
			continue
		}
		record := newVerification(shown)
		if shown != r {
			record.Kind, record.Namespace, record.Name = obj.Called()
		}
		list = append(list, record)
	}
	return list
}

// chartsOfReleases returns the results of HelmCharts, by the releases that they are made for, if these have a result, too.
func chartsOfReleases(results []*reconcile.Result) map[*manifest.Object]*reconcile.Result {
	releases, charts := map[*manifest.Object]bool{}, map[*manifest.Object]*reconcile.Result{}
	for _, r := range results {
		releases[r.Object.Object] = inventory.IsRelease(r.Object.Object)
	}
	for _, r := range results {
		if origin := r.Object.Object.Origin; releases[origin] {
			charts[origin] = r
		}
	}
	return charts
}

func newVerification(r *reconcile.Result) Verification {
	obj := r.Object.Object
	kind, namespace, name := obj.Called()
	record := Verification{
		Cluster: r.Cluster,
		Kind:    kind, Namespace: namespace, Name: name,
		Result: resultUnverified,
	}
	if found := r.Resolution; found != nil {
		record.Chart, record.Version, record.Digest = found.Chart, found.Version, found.Digest
	}
	if s := r.Signature; s != nil {
		record.Result, record.Format, record.SignedBy = resultVerified, s.Format, s.Key
		record.Issuer, record.LogIndex = s.Issuer, s.LogIndex
		if s.Identity != "" {
			record.SignedBy, record.Key = s.Identity, s.Key
		}
		if !s.Time.IsZero() {
			record.SignedAt = s.Time.UTC().Format(time.RFC3339)
		}
	}
	if r.Signed != nil {
		record.gitSignatures(r.Signed)
	}
	for _, text := range []*string{&record.Chart, &record.Version} {
		*text = obj.VeilField(*text)
	}
	if r.Failure != nil {
		record.Result, record.Error = resultFailed, r.Failure.Message
	}
	return record
}

// gitSignatures adds all signatures, and lists their formats and keys without repetitions.
func (v *Verification) gitSignatures(signed *reconcile.SignedRevision) {
	v.Result, v.Version = resultVerified, signed.Revision
	var formats, keys []string
	for _, s := range signed.Signatures {
		v.Signatures = append(v.Signatures, gitSignature{s.Object, s.Name, s.Format, s.Key})
		formats, keys = append(formats, s.Format), append(keys, s.Key)
	}
	v.Format, v.SignedBy = strings.Join(slices.Compact(formats), ", "), strings.Join(slices.Compact(keys), ", ")
}

// VerificationColumns returns the columns of a table of verifications.
func VerificationColumns() *records.Columns[Verification] {
	return &records.Columns[Verification]{
		Header:  []string{"NAMESPACE", "NAME", "CHART", "VERSION", "RESULT", "SIGNED BY"},
		Wide:    []string{"ISSUER", "LOG INDEX", "SIGNED AT"},
		Cluster: func(r Verification) string { return r.Cluster },
		Color:   resultColor,
		Row: func(r Verification) []string {
			index := ""
			if r.LogIndex != nil {
				index = strconv.FormatInt(*r.LogIndex, 10)
			}
			return []string{
				r.Namespace, r.Name, table.OrNone(r.Chart), table.OrNone(r.Version), r.Result,
				table.OrNone(r.SignedBy), table.OrNone(r.Issuer), table.OrNone(index), table.OrNone(r.SignedAt),
			}
		},
	}
}

func resultColor(title, cell string) table.Color {
	switch {
	case title == "RESULT" && cell == resultVerified:
		return table.Green
	case title == "RESULT" && cell == resultFailed:
		return table.Red
	}
	return table.Plain
}
