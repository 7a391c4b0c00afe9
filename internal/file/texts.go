package file

import "context"

type textsKey struct{}

// WithTexts returns a context in which files have other texts than on disk, as if they had been edited already. The files must
// exist, and are named by absolute paths without links.
func WithTexts(ctx context.Context, texts map[string][]byte) context.Context {
	return context.WithValue(ctx, textsKey{}, texts)
}

// Text returns the text that [WithTexts] gave a file, if any.
func Text(ctx context.Context, name string) ([]byte, bool) {
	texts, _ := ctx.Value(textsKey{}).(map[string][]byte)
	if len(texts) == 0 {
		return nil, false
	}
	path, err := Real(name)
	text, ok := texts[path]
	return text, ok && err == nil
}
