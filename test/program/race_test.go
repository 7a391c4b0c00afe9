//go:build race

package program

// raceFactor is the memory factor of the race detector, which keeps a shadow of all memory.
const raceFactor = 5
