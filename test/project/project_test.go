// Package project holds what the project says of itself against what it is: the tables of its pages, its hooks, its Action
// and its packages.
package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain lets the tests name files from the root of the project.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
