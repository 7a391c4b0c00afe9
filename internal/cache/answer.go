package cache

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// A Scope says of which source something is, and who asked it. What is private stays so by two rules:
//
//   - An answer is served only in the scope that it was given in: the same source, reached in the same way, by the same
//     identity.
//   - Bytes that came from this source are served to the identity that they were stored for, and, if the source gave them to
//     whom it named them to, for a digest that it has just named. A digest alone is no ticket: it may have become known to
//     others.
//
// [Cache.Scope] makes it. Nothing that it is made of but Shown, Item and Private is kept or written down; of the rest there
// are keyed hashes.
type Scope struct {
	// Source is the place, and what the way to it depends on: authorities, proxies. It has no login in it.
	Source string
	// Identity is what the source is asked with.
	Identity string
	// Shown is the source for people, without anything secret.
	Shown string
	// Item is what was requested, in words.
	Item string
	// Private is true if a login took part, or may have.
	Private bool
	// Named is true if the source has named the requested bytes, in an answer that it gave to this identity, and
	// gives them to whom it names them to. If it is false, as for an entry of a lock file or an archive that needs a login of
	// its own, they are those of this identity: it has to be the one that they were stored for, or are.
	Named bool

	carried string // the source in a cache that is carried
}

// Scope returns the scope of a source that is asked with an identity, which may be made of secrets.
func (c *Cache) Scope(source, identity []string, shown string) Scope {
	if c == nil {
		return Scope{}
	}
	if c.options.Carried {
		return Scope{Source: c.hashOf("source", source[0]), Shown: shown}
	}
	return Scope{
		Source:   c.hashOf(append([]string{"source"}, source...)...),
		Identity: c.hashOf(append([]string{"identity"}, identity...)...),
		Shown:    shown,
		carried:  c.options.Into.Scope(source, nil, shown).Source,
	}
}

// With returns the scope of what needs a further login, which may be none: no answer of the source alone gives it away.
func (c *Cache) With(s Scope, login []string) Scope {
	if c == nil || c.options.Carried {
		return s
	}
	s.Identity, s.Named = c.hashOf(append([]string{"further", s.Identity}, login...)...), false
	s.Private = s.Private || len(login) > 0
	return s
}

// maxAnswer bounds an answer in bytes. Lists of tags are the longest.
const maxAnswer = 32 << 20

// An Answer is what a source said, as it is stored.
type Answer struct {
	Kind    string          `json:"kind"`
	Source  string          `json:"source"` // redacted
	Name    string          `json:"name,omitempty"`
	Private bool            `json:"private,omitempty"`
	Digest  digest.Digest   `json:"digest,omitempty"` // of the bytes that belong to it
	Value   json.RawMessage `json:"value,omitempty"`
}

// answerPath is the file of an answer.
func (c *Cache) answerPath(s Scope, kind, name string, bound bool) string {
	identity := "named"
	if bound || c.options.Carried {
		identity = "identity " + s.Identity
	}
	sum := c.hashOf(kind, s.Source, identity, name)
	return path.Join(answersDir, sum[:2], sum)
}

// allowed is the rule of [Scope]. What was stored for one identity in this very run is another one's only in the next: which
// of two that ask at the same time is first would decide how many requests there are.
func (c *Cache) allowed(s Scope, d digest.Digest) bool {
	if _, ok := c.answer(c.answerPath(s, KindBytes, d.String(), true), nil); ok {
		return true
	}
	named := c.answerPath(s, KindBytes, d.String(), false)
	if _, fresh := c.fresh.Load(named); fresh || !s.Named {
		return false
	}
	_, ok := c.answer(named, nil)
	return ok
}

// Answer looks up what the source said to this identity, and decodes it into value unless that is nil. The digest is that
// of the bytes that belong to it, if there are any.
func (c *Cache) Answer(s Scope, kind, name string, value any) (digest.Digest, bool) {
	if c == nil || c.options.Refresh || s.Source == "" {
		return "", false
	}
	var text json.RawMessage
	d, ok := c.answer(c.answerPath(s, kind, name, true), &text)
	if !ok || value != nil && json.Unmarshal(text, value) != nil {
		return "", false
	}
	c.options.Into.KeepAnswer(s.forCarried(), kind, name, d, text)
	return d, true
}

func (c *Cache) answer(file string, value any) (digest.Digest, bool) {
	a, used, err := c.readAnswer(file)
	if err == nil && value != nil {
		err = json.Unmarshal(a.Value, value)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false
	case err != nil:
		c.damaged(file, "an entry", err)
		return "", false
	}
	c.touch(file, used)
	return a.Digest, true
}

// KeepAnswer stores what the source said to this identity. The value is what Answer decodes.
func (c *Cache) KeepAnswer(s Scope, kind, name string, d digest.Digest, value any) {
	if c == nil || s.Source == "" {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		c.cannotWrite(err)
		return
	}
	c.keepAnswer(c.answerPath(s, kind, name, true), &Answer{
		Kind: kind, Source: s.Shown, Name: s.Item, Private: s.Private, Digest: d, Value: text,
	})
}

func (c *Cache) keepAnswer(file string, a *Answer) {
	if err := c.writeAnswer(file, a); err != nil {
		c.cannotWrite(err)
	}
}

// writeAnswer leaves out an answer that nothing would read again.
func (c *Cache) writeAnswer(file string, a *Answer) error {
	body, err := json.Marshal(a)
	if err != nil || len(body) > maxAnswer {
		return err
	}
	return c.write(file, io.MultiReader(bytes.NewBufferString(c.seal(file, body)+"\n"), bytes.NewReader(body)))
}

// seal is the hash that stands above an answer. It has the name of the file in it, so that no answer can take another one's
// place.
func (c *Cache) seal(file string, body []byte) string {
	mac := c.mac()
	_, _ = fmt.Fprintf(mac, "seal %s\n", path.Base(file))
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

var errSeal = errors.New("it is not what was written")

// readAnswer returns an answer, and when it was used last.
func (c *Cache) readAnswer(file string) (*Answer, time.Time, error) {
	f, err := c.openFile(file)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAnswer+maxFormatFile))
	if err != nil {
		return nil, time.Time{}, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	if !hmac.Equal(head, []byte(c.seal(file, body))) {
		return nil, time.Time{}, errSeal
	}
	a := &Answer{}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, time.Time{}, err
	}
	return a, fi.ModTime(), nil
}

// damaged removes what is not what was written, and says so. A file of another user stays.
func (c *Cache) damaged(name, what string, err error) {
	if !errors.Is(err, errStrange) {
		_ = c.root.Remove(name)
	}
	c.warn(fmt.Errorf("%s in the cache in %s is damaged and is not used: %w", what, c.shownDir(), file.Cause(err)))
}
