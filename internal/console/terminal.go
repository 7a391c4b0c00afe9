package console

import (
	"os"

	"golang.org/x/term"
)

// TerminalSize reports how many columns and lines the terminal behind a file has, and whether there is one that
// understands escape sequences.
func TerminalSize(f *os.File) (width, height int, ok bool) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || !understandsEscapes(fd) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 || height <= 0 {
		return defaultColumns, defaultLines, true
	}
	return width, height, true
}
