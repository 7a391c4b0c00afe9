package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Marker names the policy that a field follows, and the part of the image that the field holds.
type Marker struct {
	Namespace, Name string
	Part            Part
}

// Part is a part of the image that a policy chose.
type Part string

// The parts of an image. Whole is its name and tag, with the digest if the policy has one.
const (
	Whole  Part = ""
	Tag    Part = "tag"
	Name   Part = "name"
	Digest Part = "digest"
)

// Key is the text that every marker contains. A file without it has no markers.
const Key = `"$imagepolicy"`

// ParseMarker parses the comment of a field. A comment without Key is neither a marker nor an error. A comment with Key that
// cannot be parsed is an error: its author expects the field to change.
func ParseMarker(comment string) (m Marker, found bool, err error) {
	text := strings.TrimSpace(strings.TrimLeft(comment, "#"))
	if !strings.Contains(text, Key) {
		return Marker{}, false, nil
	}
	fields := map[string]string{}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&fields); err != nil {
		return Marker{}, false, fmt.Errorf("the marker is not a JSON object of strings: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Marker{}, false, errors.New("the marker is followed by other text")
	}
	ref, ok := fields["$imagepolicy"]
	if !ok {
		return Marker{}, false, nil
	}
	m, err = parseReference(ref)
	return m, err == nil, err
}

func parseReference(ref string) (Marker, error) {
	parts := strings.Split(ref, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return Marker{}, fmt.Errorf("the marker refers to %q: write NAMESPACE:NAME, and :tag, :name or :digest after it for a part", ref)
	}
	m := Marker{Namespace: parts[0], Name: parts[1]}
	if len(parts) == 3 {
		switch m.Part = Part(parts[2]); m.Part {
		case Tag, Name, Digest:
		default:
			return Marker{}, fmt.Errorf("the marker asks for the part %q: the parts are tag, name and digest", parts[2])
		}
	}
	return m, nil
}

// Image is the image that a policy chose.
type Image struct{ Name, Tag, Digest string }

// Part returns a part of the image for a field. A missing digest is an error: the field would become
// empty.
func (i Image) Part(part Part) (string, error) {
	switch part {
	case Tag:
		return i.Tag, nil
	case Name:
		return i.Name, nil
	case Digest:
		if i.Digest == "" {
			return "", errors.New("the policy reflects no digest: set spec.digestReflectionPolicy")
		}
		return i.Digest, nil
	}
	text := i.Name + ":" + i.Tag
	if i.Digest != "" {
		text += "@" + i.Digest
	}
	return text, nil
}
