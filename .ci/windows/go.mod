// The tests of the program in Wine, in a module of their own: they need its file, and nothing of it.
module github.com/helmsrc/helmsrc/ci/windows

go 1.26.1
