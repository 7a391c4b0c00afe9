package admission

import (
	"testing"
)

// Only the first object of a kind includes the time to read its schema. In a run of the program, most objects are first ones.
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
