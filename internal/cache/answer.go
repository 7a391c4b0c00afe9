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
	"syscall"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
)

// A Scope identifies a source and the identity of a request to it. Two rules keep private data private:
//
//   - An answer is served only in its own scope: the same source, with the same settings of the connection, for the same
//     identity.
//   - Bytes are served to the identity that they were stored for. If the source serves bytes to every identity that it names
//     them to, they are also served for a digest that it has just named. A digest alone grants no access: it may be known
//     to a third party.
//
// [Cache.Scope] returns one. Source and Identity are keyed hashes; only Shown, Item and Private are written in clear.
type Scope struct {
	// Source identifies the location and the settings of the connection: authorities, proxies. It contains no login.
	Source string
	// Identity identifies the login of the request.
	Identity string
	// Shown is the source as text, without secrets.
	Shown string
	// Item is the requested item as text.
	Item string
	// Private is true if a login was used, or may have been used.
	Private bool
	// Named is true if the source named the requested bytes in an answer to this identity, and serves them to every identity
	// that it names them to. Otherwise, as for an entry of a lock file or an archive with a separate login, the bytes are
	// served only to the identity for which they were stored.
	Named bool

	carried string // the source in a carried cache
}

// Scope returns the scope of a source and an identity, which may contain secrets.
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

// With returns the scope with a further login, which may be empty. An answer of the source alone grants no access to it.
func (c *Cache) With(s Scope, login []string) Scope {
	if c == nil || c.options.Carried {
		return s
	}
	s.Identity, s.Named = c.hashOf(append([]string{"further", s.Identity}, login...)...), false
	s.Private = s.Private || len(login) > 0
	return s
}

// maxAnswer is the limit, in bytes, of an answer. Lists of tags are the longest.
const maxAnswer = 32 << 20

// An Answer is a stored answer of a source.
type Answer struct {
	Kind    string          `json:"kind"`
	Source  string          `json:"source"` // redacted
	Name    string          `json:"name,omitempty"`
	Private bool            `json:"private,omitempty"`
	Digest  digest.Digest   `json:"digest,omitempty"` // of the bytes that belong to it
	Value   json.RawMessage `json:"value,omitempty"`
}

// answerPath returns the file of an answer.
func (c *Cache) answerPath(s Scope, kind, name string, bound bool) string {
	identity := "named"
	if bound || c.options.Carried {
		identity = "identity " + s.Identity
	}
	sum := c.hashOf(kind, s.Source, identity, name)
	return path.Join(answersDir, sum[:2], sum)
}

// allowed applies the second rule of [Scope]. Bytes that this run stored for one identity are served to other identities only
// in later runs: otherwise the number of requests would depend on which of two parallel requests is first.
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

// Answer returns a cached answer of the source to this identity, and decodes it into value unless that is nil. The digest
// is that of the bytes that belong to the answer, or "".
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

// KeepAnswer stores an answer of the source to this identity. Answer decodes its value.
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

// writeAnswer writes an answer, unless it is too large to be read again.
func (c *Cache) writeAnswer(file string, a *Answer) error {
	body, err := json.Marshal(a)
	if err != nil || len(body) > maxAnswer {
		return err
	}
	return c.write(file, io.MultiReader(bytes.NewBufferString(c.seal(file, body)+"\n"), bytes.NewReader(body)))
}

// seal returns the hash in the first line of an answer. It covers the name of the file, so that one answer cannot replace
// another.
func (c *Cache) seal(file string, body []byte) string {
	mac := c.mac()
	_, _ = fmt.Fprintf(mac, "seal %s\n", path.Base(file))
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

var errSeal = errors.New("its content was changed")

// readAnswer returns an answer, and the time of its last use.
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

// damaged removes a damaged file and warns about it. It does not remove a file that this program has not written, or that the
// system cannot read now, because too many files are open, for example.
func (c *Cache) damaged(name, what string, err error) {
	state := "is damaged"
	if _, system := errors.AsType[syscall.Errno](err); system {
		state = "cannot be read"
	} else if !errors.Is(err, errStrange) {
		_ = c.root.Remove(name)
	}
	c.warn(fmt.Errorf("%s in the cache in %s %s and is not used: %w", what, c.shownDir(), state, file.Cause(err)))
}
