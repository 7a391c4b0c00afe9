//go:build race

package program

// raceFactor is by how much more memory a program may need with the race detector, which keeps a shadow of all memory.
const raceFactor = 5
