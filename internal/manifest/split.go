package manifest

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/edit"
)

var (
	bomUTF8    = []byte{0xEF, 0xBB, 0xBF}
	bomUTF16LE = []byte{0xFF, 0xFE}
	bomUTF16BE = []byte{0xFE, 0xFF}
)

// decodeText converts the bytes of a file to UTF-8. It accepts UTF-16 because PowerShell's > writes it.
func decodeText(file string, data []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(data, bomUTF16LE):
		data = fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, bomUTF16BE):
		data = fromUTF16(data[2:], binary.BigEndian)
	default:
		data = bytes.TrimPrefix(data, bomUTF8)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, &ParseError{Pos: offsetPos(file, data, i), Msg: "not a text file: it contains a NUL byte"}
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, &ParseError{Pos: offsetPos(file, data, i), Msg: "not a text file: it is neither UTF-8 nor UTF-16"}
	}
	return data, nil
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	text := make([]byte, 0, len(data))
	for _, r := range utf16.Decode(units) {
		text = utf8.AppendRune(text, r)
	}
	return text
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// offsetPos counts lines and characters up to a byte offset.
func offsetPos(file string, data []byte, offset int) Pos {
	offset = min(offset, len(data))
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	return Pos{
		File:   file,
		Line:   1 + bytes.Count(data[:offset], []byte("\n")),
		Column: 1 + utf8.RuneCount(data[start:offset]),
	}
}

// split cuts a stream into documents. It leaves out documents without content.
func split(data []byte) iter.Seq[edit.Piece] {
	return func(yield func(edit.Piece) bool) {
		for piece := range edit.Pieces(data) {
			if hasContent(piece.Text) && !yield(piece) {
				return
			}
		}
	}
}

func hasContent(text []byte) bool {
	for at := 0; at < len(text); {
		line := text[at : at+edit.LineLength(text[at:])]
		if !isBlank(line) {
			return true
		}
		at += len(line)
	}
	return false
}

// isBlank reports whether a line is empty, a comment, or a directive, which is a separate piece of a text cut at separators.
func isBlank(line []byte) bool {
	if len(line) > 0 && line[0] == '%' {
		return true
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, bomUTF8))
	return len(line) == 0 || line[0] == '#'
}
