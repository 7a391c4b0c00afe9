package load

import (
	"context"
	"slices"

	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// Editable finds the files that were named and may be edited: standard input is none of them.
func (o *Options) Editable(ctx context.Context) *rewrite.Found {
	names := slices.DeleteFunc(slices.Concat(o.Names, o.Offered), func(name string) bool { return name == "-" })
	return rewrite.Find(ctx, rewrite.Options{Names: names, Recursive: o.Recursive, Skip: o.SkipDirs})
}
