package render

import "math"

// exactIntegers bounds the integers that survive a substitution as they are: the controller reads what comes out with a
// library that knows floating point numbers alone.
const exactIntegers = 1 << 53

// rounded is a value with the integers that the controller's library makes of it. It is the value itself if none is large.
func rounded(v any) any {
	switch v := v.(type) {
	case int64:
		if v >= -exactIntegers && v <= exactIntegers {
			return v
		}
		f := float64(v)
		if f >= math.MaxInt64 { // which is no int64 any more, as a float64
			return f
		}
		return int64(f)
	case map[string]any:
		return roundedMap(v)
	case []any:
		if !hasLarge(v) {
			return v
		}
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = rounded(e)
		}
		return list
	}
	return v
}

func roundedMap(m map[string]any) map[string]any {
	if !hasLarge(m) {
		return m
	}
	c := make(map[string]any, len(m))
	for k, e := range m {
		c[k] = rounded(e)
	}
	return c
}

// hasLarge reports whether a value holds an integer that would be rounded.
func hasLarge(v any) bool {
	switch v := v.(type) {
	case int64:
		return v < -exactIntegers || v > exactIntegers
	case map[string]any:
		for _, e := range v {
			if hasLarge(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if hasLarge(e) {
				return true
			}
		}
	}
	return false
}
