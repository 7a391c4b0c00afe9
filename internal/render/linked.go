package render

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// link remembers a link below the path of a Kustomization: Flux's artifacts hold none, so that it is not applied. One to
// what lies below the path is no loss, nor one to what is no manifest.
func (g *generator) link(path string) {
	real, err := g.f.repo.disk.within(g.f.repo.root, path)
	_, out := errors.AsType[*outsideError](err)
	if err != nil && !out || !out && inside(g.f.path, real) {
		return
	}
	info, err := os.Stat(path)
	if ext := filepath.Ext(path); err != nil || !info.IsDir() && ext != ".yaml" && ext != ".yml" || g.f.ignores(path, info.IsDir()) {
		return
	}
	g.c.links = append(g.c.links, manifest.Link{Name: g.f.repo.display(path), Out: out})
}

// warnLinks warns of the links that a build leaves out.
func (b *builder) warnLinks(o *manifest.Object, c *closure) {
	if o.ReferenceOnly {
		return
	}
	for _, link := range c.links {
		b.notice(Notice{Code: finding.OutsideLink, Excerpt: manifest.Excerpt{Pos: manifest.Pos{File: link.Name}}, Text: link.Text()})
	}
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }
