//go:build !race

package program

// raceFactor is for the race detector, which is not here.
const raceFactor = 1
