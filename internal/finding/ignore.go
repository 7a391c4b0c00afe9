package finding

import (
	"cmp"
	"fmt"
	"strings"
)

// Ignores holds the comments that silence findings. The zero value is empty.
type Ignores struct {
	list   []*ignore
	seen   map[Pos]bool
	cycles map[cycleKey]string // the reasons of comments at members, which silence the cycle
}

// Ignore is a comment that silences findings.
type Ignore struct {
	Pos    Pos // of the comment
	Length int // of the comment, in bytes
	Line   int // the line that it applies to: its own, or the next one if the comment has a line to itself
	Codes  []string
	Reason string // the text after the codes

	// Whole is true if the comment applies to all lines of its object, from First up to, but not including, Last.
	Whole       bool
	First, Last int
}

// Covers reports whether a comment applies to a place.
func (i Ignore) Covers(p Pos) bool {
	return p.File == i.Pos.File && (p.Line == i.Line || i.Whole && p.Line >= i.First && p.Line < i.Last)
}

// ignore is a comment in an object.
type ignore struct {
	Ignore
	kind, namespace, name string // of the object
	used                  map[Code]bool
}

// Add adds the comments of an object with this kind, namespace and name.
func (s *Ignores) Add(kind, namespace, name string, comments []Ignore) {
	for _, i := range comments {
		if s.seen[i.Pos] {
			continue
		}
		if s.seen == nil {
			s.seen = map[Pos]bool{}
		}
		s.seen[i.Pos] = true
		s.list = append(s.list, &ignore{i, kind, namespace, name, map[Code]bool{}})
	}
}

// Silences reports whether a comment silences a finding, returns its reason, and records its use.
func (s *Ignores) Silences(f Finding) (reason string, silenced bool) {
	if len(s.list) == 0 {
		return "", false
	}
	if rule, ok := Lookup(string(f.Code)); !ok || !rule.Silenceable {
		return "", false
	}
	cycle := f.cycle()
	reason, silenced = s.cycles[cycle]
	for _, i := range s.list {
		if i.Covers(f.Pos) && i.names(f.Code) {
			i.used[f.Code], silenced = true, true
			reason = cmp.Or(reason, i.Reason)
		}
	}
	if silenced && cycle != (cycleKey{}) {
		if s.cycles == nil {
			s.cycles = map[cycleKey]string{}
		}
		s.cycles[cycle] = reason
	}
	return reason, silenced
}

func (i *ignore) names(code Code) bool {
	for _, c := range i.Codes {
		if current(Code(strings.ToUpper(c))) == code {
			return true
		}
	}
	return false
}

// Findings returns a finding for each comment without an effect. All findings must have been passed to Silences before.
func (s *Ignores) Findings() []Finding {
	var found []Finding
	for _, i := range s.list {
		if len(i.Codes) == 0 {
			found = append(found, i.finding(UnknownCode, "the comment names no code"))
		}
		for _, c := range i.Codes {
			rule, known := Lookup(strings.ToUpper(c))
			switch {
			case !known:
				found = append(found, i.finding(UnknownCode, fmt.Sprintf("there is no code %q", c)))
			case !rule.Silenceable:
				found = append(found, i.finding(UnknownCode, string(rule.Code)+" cannot be silenced"))
			case rule.Example != "" && !i.used[rule.Code]:
				found = append(found, i.finding(UselessIgnore, "there is no "+string(rule.Code)+" here to silence"))
			}
		}
	}
	return found
}

func (i *ignore) finding(code Code, message string) Finding {
	rule, _ := Lookup(string(code))
	return Finding{
		Code: code, Severity: rule.Severity, Message: message, Fix: rule.Hint(),
		Kind: i.kind, Namespace: i.namespace, Name: i.name,
		Pos: i.Pos, Length: i.Length,
	}
}
