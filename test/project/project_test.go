// Package project compares the pages of the project with the project: the tables of its pages, its hooks, its Action and its
// packages.
package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain changes to the root of the project, so that tests can name files from there.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
