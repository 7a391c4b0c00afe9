package index

import (
	"fmt"
	"testing"
)

func TestOddities(t *testing.T) {
	for i, text := range oddities {
		t.Run(fmt.Sprint(i), func(t *testing.T) { agree(t, []byte(text)) })
	}
}
