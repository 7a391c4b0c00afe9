package console

import (
	"os"

	"golang.org/x/term"
)

// TerminalSize reports the columns and lines of the terminal behind a file, and whether there is a terminal that
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
