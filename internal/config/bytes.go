package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bytes is a number of bytes, written as a number or as a Kubernetes quantity
// such as 50Mi. It is positive.
type Bytes int64

func (b *Bytes) String() string {
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}

func (b *Bytes) Type() string { return "bytes" }

func (b *Bytes) Set(s string) error {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return fmt.Errorf("%q is neither a number of bytes nor a quantity such as 50Mi", s)
	}
	n, ok := q.AsInt64()
	if !ok || n <= 0 {
		return fmt.Errorf("%q is not a positive whole number of bytes", s)
	}
	*b = Bytes(n)
	return nil
}
