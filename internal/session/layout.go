package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Unusable returns the usage error for a directory that cannot be opened as an artifacts directory. The option named it, or ""
// if an argument did.
func Unusable(option string, err error) error {
	if _, newer := errors.AsType[*finding.Problem](err); newer {
		option = ""
	}
	return &exit.UsageError{Option: option, Err: err}
}

// KnownKinds returns an error if the store holds objects of unknown kinds, of a newer program. Their files are unknown, too,
// so no file may be removed or left behind. The verb completes the advice to use the newer program.
func KnownKinds(st *store.Store, dir, verb string) error {
	kinds, err := st.UnknownKinds()
	if err != nil || len(kinds) == 0 {
		return err
	}
	return &finding.Problem{Text: unknownKinds(dir, kinds), Advice: "a newer helmsrc fetched them: " + verb + " with that one"}
}

func unknownKinds(dir string, kinds []string) string {
	return fmt.Sprintf("%s contains objects of kinds that this helmsrc does not know: %s", dir, strings.Join(kinds, ", "))
}

// WarnUnknownKinds warns about objects in the store whose kinds are unknown and cannot be shown.
func (w *Worker) WarnUnknownKinds(st *store.Store, dir string) {
	if kinds, err := st.UnknownKinds(); err == nil && len(kinds) > 0 {
		w.ReportStorage(finding.OddStorage, errors.New(unknownKinds(dir, kinds)))
	}
}
