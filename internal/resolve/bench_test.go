package resolve_test

import (
	"fmt"
	"testing"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// manyTags returns n tags in the order of a registry's list, which is lexical.
func manyTags(n int, prefix string) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf("%s%d.%d.%d", prefix, i%7, i/7%31, i)
		if i%5 == 0 {
			tags[i] += fmt.Sprintf("-rc.%d", i%3)
		}
	}
	return tags
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{5_000, 10_000} {
		for _, prefix := range []string{"", "v"} {
			cands := published(manyTags(n, prefix)...)
			for _, version := range []string{"*", "^3.2", ">=9"} {
				b.Run(fmt.Sprintf("n=%d/prefix=%s/version=%s", n, prefix, version), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = resolve.Choose(cands, version)
					}
				})
			}
		}
	}
}

func BenchmarkChooseFromTags(b *testing.B) {
	tags := manyTags(10_000, "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := resolve.ChooseFromTags(tags, "^3.2"); err != nil {
			b.Fatal(err)
		}
	}
}
