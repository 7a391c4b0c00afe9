package cmd

import "path/filepath"

// cacheDir is where this user's programs keep what they can fetch again, on this
// system; empty if the environment does not say.
func cacheDir(system string, getenv func(string) string) string {
	base := ""
	switch home := getenv("HOME"); {
	case system == "windows":
		base = getenv("LocalAppData")
	case system == "darwin" && home != "":
		base = filepath.Join(home, "Library", "Caches")
	case system == "darwin":
	case filepath.IsAbs(getenv("XDG_CACHE_HOME")):
		base = getenv("XDG_CACHE_HOME")
	case home != "":
		base = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "helmsrc")
}
