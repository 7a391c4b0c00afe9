package reconcile

import (
	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// Transfer is how a download gets on.
type Transfer = fetch.Progress

// Progress is called as a run goes on. Its methods are called from many goroutines,
// except for one object in order.
type Progress interface {
	Started(*admission.Admitted)
	Transferred(*admission.Admitted, Transfer)
	// Decided is called with a decision about an object, in words, if [Options.Decisions] asks for them.
	Decided(adm *admission.Admitted, decision string)
	// Waiting is called when another process has had the object for a second, and with false when it has it no more.
	Waiting(adm *admission.Admitted, waiting bool)
	Finished(*Result)
}
