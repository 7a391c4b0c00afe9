package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Unusable is the usage error of a directory that cannot be opened as an artifacts directory. The option named it, or "" if an
// argument did.
func Unusable(option string, err error) error {
	var layout *store.LayoutError
	if errors.As(err, &layout) {
		return &exit.UsageError{Err: layout}
	}
	return &exit.UsageError{Option: option, Err: err}
}

// unknownKindsError is an artifacts directory with objects that a newer program fetched.
type unknownKindsError struct {
	dir   string
	kinds []string
	hint  string
}

func (e *unknownKindsError) Error() string {
	return fmt.Sprintf("%s holds objects of kinds that this helmsrc does not know: %s", e.dir, strings.Join(e.kinds, ", "))
}

// Hint says which program knows them.
func (e *unknownKindsError) Hint() string { return e.hint }

// KnownKinds returns an [*unknownKindsError] if the store holds objects of kinds that this program does not know. What belongs to
// such objects is not known either, and nothing of it may be removed or left behind. The verb is what the newer program is for.
func KnownKinds(st *store.Store, dir, verb string) error {
	kinds, err := st.UnknownKinds()
	if err != nil || len(kinds) == 0 {
		return err
	}
	e := &unknownKindsError{dir: dir, kinds: kinds}
	if verb != "" {
		e.hint = "a newer helmsrc fetched them: " + verb + " with that one"
	}
	return e
}

// WarnUnknownKinds warns of what is in the store and cannot be shown.
func (w *Worker) WarnUnknownKinds(st *store.Store, dir string) {
	var unknown *unknownKindsError
	if err := KnownKinds(st, dir, ""); errors.As(err, &unknown) {
		w.ReportStorage(finding.OddStorage, unknown)
	}
}
