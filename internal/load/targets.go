package load

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Targets admits the selected objects, in input order, each with the sources that
// it needs before it where these were not selected themselves. Rejected objects
// are reported and left out.
func (l *Reader) Targets(in *Input) []*admission.Admitted {
	chosen := map[*manifest.Object]*admission.Admitted{}
	before := map[*manifest.Object][]*admission.Admitted{} // sources from outside the input, by what brought them
	inInput := map[*manifest.Object]bool{}
	var wanted []*manifest.Object
	for _, obj := range in.Inventory.Objects() {
		inInput[obj] = true
		if in.Wanted(obj) {
			wanted = append(wanted, obj)
		}
	}
	in.Inventory.AdmitAll(wanted)
	for _, obj := range wanted {
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			l.Reject(in, obj, err)
			continue
		}
		chosen[obj] = adm
	}
	for _, obj := range wanted {
		if chosen[obj] == nil {
			continue
		}
		for _, source := range in.SourcesOf(chosen[obj], func(r *inventory.RejectedError) { l.rejectSource(in, r) }) {
			if chosen[source.Object] != nil {
				continue
			}
			chosen[source.Object] = source
			if !inInput[source.Object] {
				before[obj] = append(before[obj], source)
			}
		}
	}
	var targets []*admission.Admitted
	for _, obj := range in.Inventory.Objects() {
		targets = append(targets, before[obj]...)
		if adm := chosen[obj]; adm != nil {
			targets = append(targets, adm)
		}
	}
	for _, t := range targets {
		if !in.validating {
			l.ReportWarnings(in, t)
		}
	}
	l.ReportNotes(in)
	return targets
}

// ReportNotes names the files beside the input that were used, each once.
func (l *Reader) ReportNotes(in *Input) {
	var lines []string
	for _, note := range in.Set.Notes() {
		if line := note.String(); in.once(line) {
			lines = append(lines, line)
		}
	}
	// The order in which a run came to need them says nothing.
	slices.Sort(lines)
	for _, line := range lines {
		l.Console.Info(console.Subject{}, line)
	}
}
