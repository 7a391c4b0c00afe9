package edit

import "bytes"

// Text is the text of the document, without the separators around it.
func (d *Document) Text() []byte { return bytes.TrimPrefix(d.text, []byte("\ufeff")) }

// Put asks for other documents in the place of one, at least one, in the place of all edits of it. They are texts as
// [Document.Text] returns them; a document that stays is put with its own text.
func (d *Document) Put(texts ...[]byte) { d.instead = texts }

func joined(d *Document, texts [][]byte) []byte {
	var out bytes.Buffer
	ending := d.ending()
	if bytes.HasPrefix(d.text, []byte("\ufeff")) {
		out.WriteString("\ufeff")
	}
	for i, text := range texts {
		if i == 0 {
			out.Write(text)
			continue
		}
		if last := out.Bytes(); len(last) > 0 && last[len(last)-1] != '\n' && last[len(last)-1] != '\r' {
			out.WriteString(ending)
		}
		if !bytes.HasPrefix(text, []byte("---")) {
			out.WriteString("---" + ending)
		}
		out.Write(text)
	}
	if end := d.text[len(d.text)-1]; end != '\n' && end != '\r' { // the file ends so
		return bytes.TrimRight(out.Bytes(), "\r\n")
	}
	if last := out.Bytes(); last[len(last)-1] != '\n' && last[len(last)-1] != '\r' {
		out.WriteString(ending)
	}
	return out.Bytes()
}
