package fetch

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// LooksLikeGzip reports whether a file begins as compressed ones do.
func LooksLikeGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// LooksLikeHTML reports whether a file begins as web pages do.
func LooksLikeHTML(head []byte) bool {
	text := strings.ToLower(string(bytes.TrimLeft(head, "\ufeff \t\r\n")))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<!--", "<script"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// maxSnippetBytes is how much is read of an answer that is not wanted, for its words and so that its connection can be
// used again.
const maxSnippetBytes = 2 << 10

// maxSnippetWait is how long a server may take for it.
const maxSnippetWait = 2 * time.Second

// Snippet reads the beginning of an answer and closes it.
func Snippet(answer *http.Response) []byte {
	defer func() { _ = answer.Body.Close() }()
	// Closing the body ends a read that waits.
	stop := time.AfterFunc(maxSnippetWait, func() { _ = answer.Body.Close() })
	defer stop.Stop()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxSnippetBytes))
	return text
}

const MaxHead = 64

// A Prefix keeps the first bytes that are written to it, up to a limit.
type Prefix struct {
	Bytes []byte
	Limit int
}

// Write implements io.Writer.
func (p *Prefix) Write(b []byte) (int, error) {
	p.Bytes = append(p.Bytes, b[:min(len(b), p.Limit-len(p.Bytes))]...)
	return len(b), nil
}
