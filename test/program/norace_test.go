//go:build !race

package program

// raceFactor is the memory factor of the race detector, which is not used here.
const raceFactor = 1
