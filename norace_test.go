//go:build !race

package main

// raceFactor is for the race detector, which is not here.
const raceFactor = 1
