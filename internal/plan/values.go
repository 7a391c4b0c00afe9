package plan

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxFields is the limit of listed paths of values.
	maxFields = 200
	// maxDepth is the limit of the depth at which values are compared: composed values are not deeper.
	maxDepth = 256
)

// Step is a key of a map or an index of a list.
type Step = any

// Values returns the paths at which two sets of composed values differ, sorted, and the number of paths beyond maxFields.
// Secret reports whether the value of one side at a path comes from a Secret; nil means that no value does.
func Values(before, after map[string]any, secret func(before bool, path []Step) bool) (fields []Field, omitted int) {
	d := &difference{secret: secret}
	d.maps(before, after, nil)
	return d.fields, d.omitted
}

type difference struct {
	secret  func(before bool, path []Step) bool
	fields  []Field
	omitted int
}

// Same reports whether two values are equal as far as their digest is concerned.
func Same(before, after any) bool {
	d := &difference{}
	d.any(before, after, nil)
	return len(d.fields) == 0
}

func (d *difference) note(change string, path []Step) {
	if len(d.fields) >= maxFields {
		d.omitted++
		return
	}
	secret := d.secret != nil && (change != changeAdded && d.secret(true, path) || change != changeRemoved && d.secret(false, path))
	d.fields = append(d.fields, Field{Path: Path(path), Change: change, Secret: secret})
}

func (d *difference) maps(before, after map[string]any, path []Step) {
	eachKey(before, after, func(key, change string) {
		if at := append(slices.Clone(path), key); change == changeChanged {
			d.any(before[key], after[key], at)
		} else {
			d.note(change, at)
		}
	})
}

// eachKey visits the keys of two maps in order. A key in both maps is passed as changed, even if its values are equal.
func eachKey[V any](before, after map[string]V, visit func(key, change string)) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		_, was := before[key]
		_, is := after[key]
		switch {
		case !was:
			visit(key, changeAdded)
		case !is:
			visit(key, changeRemoved)
		default:
			visit(key, changeChanged)
		}
	}
}

func (d *difference) any(old, now any, path []Step) {
	if len(path) > maxDepth {
		if !reflect.DeepEqual(old, now) {
			d.note(changeChanged, path)
		}
		return
	}
	oldMap, wasMap := old.(map[string]any)
	nowMap, isMap := now.(map[string]any)
	if wasMap && isMap {
		d.maps(oldMap, nowMap, path)
		return
	}
	oldList, wasList := old.([]any)
	nowList, isList := now.([]any)
	if wasList && isList {
		d.lists(oldList, nowList, path)
		return
	}
	if !same(old, now) {
		d.note(changeChanged, path)
	}
}

func (d *difference) lists(old, now []any, path []Step) {
	for i := range max(len(old), len(now)) {
		at := append(slices.Clone(path), i)
		switch {
		case i >= len(old):
			d.note(changeAdded, at)
		case i >= len(now):
			d.note(changeRemoved, at)
		default:
			d.any(old[i], now[i], at)
		}
	}
}

// same reports whether two values are equal in the YAML whose digest decides.
func same(a, b any) bool { return reflect.DeepEqual(whole(a), whole(b)) }

// whole converts a whole number of any type to int64.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case int:
		return int64(v)
	}
	return v
}

// Path returns a path in the notation of helm --set.
func Path(path []Step) string {
	var b strings.Builder
	for i, step := range path {
		if index, ok := step.(int); ok {
			b.WriteString("[" + strconv.Itoa(index) + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`).Replace(fmt.Sprint(step)))
	}
	return b.String()
}
