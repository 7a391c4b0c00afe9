package cmd

import (
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// concealedTexts copies what an event says about an artifact: its revision may be made of a Secret's value.
func concealedTexts(obj *manifest.Object, texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	shown := make(map[string]string, len(texts))
	for name, text := range texts {
		shown[name] = obj.Secrets.Text(obj.Veil(text))
	}
	return shown
}
