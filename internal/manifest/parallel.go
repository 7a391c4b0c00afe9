package manifest

import (
	"iter"
	"runtime"
	"weak"

	"go.yaml.in/yaml/v3"
)

// smallDocument is the limit of a document that is parsed ahead, in bytes: a few of them take less memory than a large one.
const smallDocument = 64 << 10

// A piece is a document of the input, or the error of a file without documents.
type piece struct {
	file *File
	doc  *document
	err  error
}

// parse reads the documents of files, several at a time, and sorts their objects in the order of the input.
func (l *loader) parse(list []*File) {
	for p := range inParallel(l.pieces(list), piece.prepare) {
		switch err := l.ctx.Err(); {
		case err != nil:
			l.fail(err)
			return
		case p.file.failed(): // an earlier document of the file was unusable
		case p.err != nil:
			p.file.fail(p.err)
		default:
			if err := p.file.batch.document(p.doc); err != nil {
				p.file.fail(err)
			}
		}
	}
}

// pieces cuts the files into documents. It skips the remaining documents of a file that has failed.
func (l *loader) pieces(list []*File) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for _, f := range list {
			if f.data == nil {
				continue
			}
			f.batch = *newBatch(l.parsing, f.Name, f.data)
			documents, err := f.batch.cut()
			if err != nil {
				if !yield(piece{file: f, err: err}) {
					return
				}
				continue
			}
			for d := range documents {
				if f.failed() {
					break
				}
				if !yield(piece{file: f, doc: d}) {
					return
				}
			}
		}
	}
}

// fail records that a file cannot be used. Only a file found in a directory may be no manifest at all, and is skipped.
func (f *File) fail(err error) {
	err = quoted(err, f.batch.text)
	f.batch = batch{}
	if f.offered && !mentionsFlux(f.data) && !looksLikeData(f.data) {
		f.unread = err
		f.skips = append(f.skips, Skip{File: f.Name, Reason: err.Error()})
		return
	}
	f.errs = append(f.errs, err)
}

func (f *File) failed() bool { return f.unread != nil || len(f.errs) > 0 }

func (p piece) prepare() {
	if p.doc == nil || len(p.doc.text) > smallDocument {
		return
	}
	defer func() { _ = recover() }() // the goroutine that reads the document in order panics again
	tree, err := p.doc.parse()
	if err == nil && tree != nil && classify(scalar(tree, "apiVersion"), scalar(tree, "kind"), tree) == ours {
		_, _ = p.doc.object(tree, nil) // the document keeps the result, errors included
	}
	p.doc.early = &parsed{tree, err}
}

// parsed is the tree of a document, nil for an empty document.
type parsed struct {
	tree *yaml.Node
	err  error
}

// first returns the tree of a document that is read for the first time, possibly parsed ahead. The tree is not kept.
func (d *document) first() (*yaml.Node, error) {
	early := d.early
	if d.early = nil; early == nil {
		tree, err := d.parse()
		early = &parsed{tree, err}
	}
	d.read = weak.Make(early.tree)
	return early.tree, early.err
}

// inParallel yields the items of a sequence in their order, each when its work is done. It works on a few at a time.
func inParallel[T any](items iter.Seq[T], work func(T)) iter.Seq[T] {
	type job struct {
		item T
		done chan struct{}
	}
	return func(yield func(T) bool) {
		next, stop := iter.Pull(items)
		defer stop()
		var jobs []job
		for more := true; more || len(jobs) > 0; {
			var item T
			for len(jobs) < 2*runtime.GOMAXPROCS(0) && more {
				if item, more = next(); more {
					j := job{item, make(chan struct{})}
					jobs = append(jobs, j)
					go func() {
						defer close(j.done)
						work(j.item)
					}()
				}
			}
			if len(jobs) == 0 {
				return
			}
			<-jobs[0].done
			item, jobs = jobs[0].item, jobs[1:]
			if !yield(item) {
				return
			}
		}
	}
}
