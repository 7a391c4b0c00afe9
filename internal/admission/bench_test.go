package admission

import (
	"testing"
)

// The first object of a kind pays for reading its schema, later ones do not. A run of the program is all first objects.
func BenchmarkFirst(b *testing.B) {
	for _, kind := range []string{"HelmRepository", "HelmChart", "GitRepository", "Bucket"} {
		b.Run(kind, func(b *testing.B) {
			obj := object(b, of(kind, specs[kind]))
			for b.Loop() {
				s, err := schemas[kind].read()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.admit(obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("HelmChart with rules", func(b *testing.B) {
		obj := object(b, of("HelmChart", chartSpec+"verify: {}"))
		for b.Loop() {
			s, err := schemas["HelmChart"].read()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.admit(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	for _, kind := range []string{"HelmRepository", "HelmChart", "GitRepository", "Bucket"} {
		b.Run(kind, func(b *testing.B) {
			obj := object(b, of(kind, specs[kind]))
			for b.Loop() {
				if _, err := Admit(obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
