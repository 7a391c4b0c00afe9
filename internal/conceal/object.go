package conceal

import (
	"slices"
	"strings"
)

// minBare is the length of the shortest value that is replaced in a message without quotes around it.
const minBare = 3

// Within replaces values in a text about the object that they were put into. It also replaces short values if they are
// separate words or in quotes, and a value of any length if it is the whole text.
func Within(text string, values []string) string {
	if text != "" && slices.Contains(values, text) {
		return Hidden
	}
	values = slices.Clone(values)
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range slices.Compact(values) {
		switch {
		case value == "" || value == Hidden:
		case Distinguishing(value):
			text = strings.ReplaceAll(text, value, Hidden)
		case len(value) >= minBare:
			text = replaceWord(text, value)
		default:
			for _, quote := range []string{`"`, `'`, "`"} {
				text = strings.ReplaceAll(text, quote+value+quote, quote+Hidden+quote)
			}
		}
	}
	return text
}

// Distinguishing reports whether a value is also replaced inside of words.
func Distinguishing(value string) bool {
	return len(value) >= minText && !common(value) && solid(value)
}

// InWord reports whether a text contains a value where [Within] keeps it: as a part of a longer word.
func InWord(text, value string) bool {
	return len(value) >= minBare && !Distinguishing(value) && strings.Contains(replaceWord(text, value), value)
}

func replaceWord(text, value string) string {
	var b strings.Builder
	from := 0
	for {
		at := strings.Index(text[from:], value)
		if at < 0 {
			break
		}
		at += from
		end := at + len(value)
		b.WriteString(text[from:at])
		if alone(text, at, len(value)) {
			b.WriteString(Hidden)
		} else {
			b.WriteString(value)
		}
		from = end
	}
	return b.String() + text[from:]
}

// Parts returns the parts of a field that are not shown. The arguments are the field and the field with Hidden instead of
// the values of Secrets. Of several parts, it returns each, and all of them with the text between them.
func Parts(field, shown string) []string {
	if field == shown {
		return nil
	}
	first, last := strings.Index(shown, Hidden), strings.LastIndex(shown, Hidden)
	if first < 0 {
		return []string{field}
	}
	before, after := shown[:first], shown[last+len(Hidden):]
	if len(field) < len(before)+len(after) || !strings.HasPrefix(field, before) || !strings.HasSuffix(field, after) {
		return []string{field}
	}
	part := field[len(before) : len(field)-len(after)]
	list := []string{part}
	if first == last {
		return list
	}
	for _, between := range strings.Split(shown[first:last], Hidden)[1:] {
		value, rest, found := strings.Cut(part, between)
		if !found || between == "" {
			return list
		}
		list, part = append(list, value), rest
	}
	return append(list, part)
}
