// Tests of .pre-commit-hooks.yaml with the real pre-commit, in a module of their own because not everybody has that
// program. .ci/run installs it.
module github.com/helmsrc/helmsrc/ci/hooks

go 1.26.0
