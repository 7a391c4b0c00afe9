package helmrepo

import (
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

func repository(w *fetchtest.World, t *testing.T, base string, id *auth.Identity, o Options) *Repository {
	t.Helper()
	h, err := Open(w.Client(t), base, id, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
