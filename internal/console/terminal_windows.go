package console

import "golang.org/x/sys/windows"

// understandsEscapes turns escape sequences on. Consoles of Windows do not
// understand them by default, and old ones not at all.
func understandsEscapes(fd int) bool {
	var mode uint32
	console := windows.Handle(fd)
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
