package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A gitConn carries the words of upload-pack, the program that serves fetches, from and to one repository.
type gitConn interface {
	// Advertise starts a new session and returns the advertisement of the server.
	Advertise(ctx context.Context) (io.ReadCloser, error)
	// Exchange sends a request and returns the answer. The answer has to be closed before the next request.
	Exchange(ctx context.Context, request []byte) (io.ReadCloser, error)
	// scrub removes secrets from a text of the server.
	scrub(text string) string
	Close() error
}

// maxAdvertisement bounds a list of references: a hundred bytes each, for more than the largest repositories have.
const (
	listOfReferences = "list of references"
	maxAdvertisement = 256 << 20
)

// A gitRemote is a repository on a server. It speaks version 2 of the protocol, where the server need not list all that
// it has, or version 0, where it does.
type gitRemote struct {
	conn gitConn
	v2   bool
	caps map[string]string
	all  []gitReference // version 0
}

type gitReference struct {
	name   string
	hash   plumbing.Hash
	peeled plumbing.Hash // of an annotated tag: the commit
	target string        // of a symbolic one
}

// commit returns the hash of the commit: of an annotated tag, the peeled hash.
func (r gitReference) commit() plumbing.Hash {
	if !r.peeled.IsZero() {
		return r.peeled
	}
	return r.hash
}

func openGitRemote(ctx context.Context, conn gitConn) (*gitRemote, error) {
	r := &gitRemote{conn: conn, caps: map[string]string{}}
	advertisement, err := conn.Advertise(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = advertisement.Close() }()
	return r, r.readAdvertisement(newPackets(conn, advertisement, listOfReferences, maxAdvertisement))
}

// newPackets reads an answer of the server, of at most limit bytes.
func newPackets(conn gitConn, from io.Reader, what string, limit int64) *packetReader {
	return &packetReader{from: from, left: limit, tooLarge: tooLarge(what, limit), scrub: conn.scrub}
}

// readAdvertisement reads the server's advertisement. Over HTTP a line with the service's name and a flush come before.
func (r *gitRemote) readAdvertisement(p *packetReader) error {
	first := true
	for {
		line, kind, err := p.line()
		switch {
		case err != nil:
			return err
		case kind == flushPacket && !first:
			return r.checkFormat()
		case kind == flushPacket || strings.HasPrefix(line, "# service="):
			if kind == flushPacket {
				first = false // an empty repository of an old server
			} else if _, kind, err = p.line(); err != nil || kind != flushPacket {
				return errors.Join(errGitProtocol, err)
			}
			continue
		case line == "version 2":
			r.v2 = true
		case line == "version 1":
		case r.v2:
			r.addCapability(line)
		default:
			if err := r.addReference(line, first); err != nil {
				return err
			}
		}
		first = false
	}
}

func (r *gitRemote) addCapability(word string) {
	name, value, _ := strings.Cut(word, "=")
	if old, found := r.caps[name]; found {
		value = old + " " + value
	}
	r.caps[name] = value
}

// addReference reads a line of version 0; the first one has the capabilities.
func (r *gitRemote) addReference(line string, first bool) error {
	line, caps, found := strings.Cut(line, "\x00")
	if found {
		for word := range strings.FieldsSeq(caps) {
			r.addCapability(word)
		}
	} else if first {
		return errGitProtocol
	}
	hash, name, ok := strings.Cut(line, " ")
	if strings.HasPrefix(line, "shallow ") {
		return nil
	}
	if !ok || !plumbing.IsHash(hash) {
		return errGitProtocol
	}
	switch target, peeled := strings.CutSuffix(name, "^{}"); {
	case name == "capabilities^{}":
	case peeled && len(r.all) > 0 && r.all[len(r.all)-1].name == target:
		r.all[len(r.all)-1].peeled = plumbing.NewHash(hash)
	default:
		r.all = append(r.all, gitReference{name: name, hash: plumbing.NewHash(hash), target: r.symref(name)})
	}
	return nil
}

func (r *gitRemote) symref(name string) string {
	for pair := range strings.FieldsSeq(r.caps["symref"]) {
		if from, to, _ := strings.Cut(pair, ":"); from == name {
			return to
		}
	}
	return ""
}

// errGitProtocol is also the error for web pages in place of repositories.
var errGitProtocol = errors.New("the server's answer is not in Git's protocol")

func (r *gitRemote) checkFormat() error {
	if format := r.caps["object-format"]; format != "" && !r.can("object-format", "sha1") {
		return fmt.Errorf("repositories with object format %s are not supported", finding.OneLine(format, fetch.MaxReason))
	}
	return nil
}

// references lists the references whose names begin so.
func (r *gitRemote) references(ctx context.Context, prefixes ...string) ([]gitReference, error) {
	if !r.v2 {
		var some []gitReference
		for _, ref := range r.all {
			if hasPrefix(ref.name, prefixes) {
				some = append(some, ref)
			}
		}
		return some, nil
	}
	q := r.command("ls-refs")
	q.line("peel")
	q.line("symrefs")
	for _, prefix := range prefixes {
		q.line("ref-prefix " + prefix)
	}
	q.flush()
	response, err := r.conn.Exchange(ctx, q.Bytes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Close() }()
	return readReferences(newPackets(r.conn, response, listOfReferences, maxAdvertisement), prefixes)
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func readReferences(p *packetReader, prefixes []string) ([]gitReference, error) {
	var refs []gitReference
	for {
		line, kind, err := p.line()
		if err != nil || kind == flushPacket {
			return refs, err
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, errGitProtocol
		}
		if fields[0] == "unborn" || !hasPrefix(fields[1], prefixes) {
			continue
		}
		if !plumbing.IsHash(fields[0]) {
			return nil, errGitProtocol
		}
		ref := gitReference{name: fields[1], hash: plumbing.NewHash(fields[0])}
		for _, field := range fields[2:] {
			if hash, ok := strings.CutPrefix(field, "peeled:"); ok && plumbing.IsHash(hash) {
				ref.peeled = plumbing.NewHash(hash)
			}
			if target, ok := strings.CutPrefix(field, "symref-target:"); ok {
				ref.target = target
			}
		}
		refs = append(refs, ref)
	}
}

// command begins a request of version 2.
func (r *gitRemote) command(name string) *packetWriter {
	q := &packetWriter{}
	q.line("command=" + name)
	if _, ok := r.caps["object-format"]; ok {
		q.line("object-format=sha1")
	}
	q.delimit()
	return q
}

// wantsCommits reports whether the server sends commits that are not at the tip of a reference.
func (r *gitRemote) wantsCommits() bool {
	_, reachable := r.caps["allow-reachable-sha1-in-want"]
	return r.v2 || reachable
}

// filters reports whether the server can leave files out and give them away one by one.
func (r *gitRemote) filters() bool {
	return r.v2 && r.can("fetch", "filter")
}

// shallow reports whether the server can leave history out.
func (r *gitRemote) shallow() bool {
	_, v0 := r.caps["shallow"]
	return v0 || r.v2 && r.can("fetch", "shallow")
}

// can reports whether a capability has a word.
func (r *gitRemote) can(capability, word string) bool {
	return slices.Contains(strings.Fields(r.caps[capability]), word)
}

// packRequest lists the wanted objects of a pack.
type packRequest struct {
	wants   []plumbing.Hash
	shallow bool // without history
	noFiles bool // without blobs
}

// pack requests objects and returns the stream of their pack, of at most limit bytes.
func (r *gitRemote) pack(ctx context.Context, q packRequest, limit int64) (io.ReadCloser, error) {
	request := r.packRequestV0(q)
	if r.v2 {
		request = r.packRequestV2(q)
	}
	answer, err := r.conn.Exchange(ctx, request.Bytes())
	if err != nil {
		return nil, err
	}
	p := newPackets(r.conn, answer, "pack", limit)
	found := r.findPackV0
	if r.v2 {
		found = r.findPackV2
	}
	if err := found(p, q.shallow && r.shallow()); err != nil {
		_ = answer.Close()
		return nil, err
	}
	_, multiplexed := r.caps["side-band-64k"]
	return &packStream{packets: p, answer: answer, plain: !r.v2 && !multiplexed}, nil
}

func (r *gitRemote) packRequestV0(q packRequest) *packetWriter {
	w := &packetWriter{}
	caps := ""
	for _, name := range []string{"multi_ack_detailed", "side-band-64k", "ofs-delta", "no-progress"} {
		if _, ok := r.caps[name]; ok {
			caps += " " + name
		}
	}
	for _, want := range q.wants {
		w.line("want " + want.String() + caps)
		caps = ""
	}
	if q.shallow && r.shallow() {
		w.line("deepen 1")
	}
	w.flush()
	w.line("done")
	return w
}

func (r *gitRemote) packRequestV2(q packRequest) *packetWriter {
	w := r.command("fetch")
	w.line("no-progress")
	w.line("ofs-delta")
	for _, want := range q.wants {
		w.line("want " + want.String())
	}
	if q.shallow && r.shallow() {
		w.line("deepen 1")
	}
	if q.noFiles && r.filters() {
		w.line("filter blob:none")
	}
	w.line("done")
	w.flush()
	return w
}

func (r *gitRemote) findPackV0(p *packetReader, shallow bool) error {
	for {
		line, kind, err := p.line()
		switch {
		case err != nil:
			return err
		case kind == flushPacket && shallow, strings.HasPrefix(line, "shallow "), strings.HasPrefix(line, "unshallow "):
		case line == "NAK", strings.HasPrefix(line, "ACK "):
			return nil
		default:
			return errGitProtocol
		}
	}
}

func (r *gitRemote) findPackV2(p *packetReader, _ bool) error {
	for {
		line, kind, err := p.line()
		switch {
		case err != nil:
			return err
		case kind == flushPacket:
			return errGitProtocol
		case line == "packfile":
			return nil
		}
	}
}

// packStream takes the pack out of the packets that it comes in, beside the server's remarks.
type packStream struct {
	packets *packetReader
	answer  io.Closer
	plain   bool // there are no packets
	rest    []byte
	ended   bool
}

func (s *packStream) Close() error { return s.answer.Close() }

func (s *packStream) Read(b []byte) (int, error) {
	if s.plain {
		return s.packets.Read(b)
	}
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *packStream) next() error {
	const data, remark, failure = 1, 2, 3
	payload, kind, err := s.packets.next()
	switch {
	case err != nil:
		return err
	case kind == flushPacket:
		s.ended = true
		return nil
	case len(payload) == 0:
		return errGitProtocol
	}
	switch payload[0] {
	case data:
		s.rest = payload[1:]
	case remark:
	case failure:
		return &remoteError{text: s.packets.show(payload[1:])}
	default:
		return errGitProtocol
	}
	return nil
}

// The kinds of packets. All kinds except data mark ends.
type packetKind int

const (
	dataPacket packetKind = iota
	flushPacket
	delimiterPacket
)

// maxPacket is the protocol's own bound.
const maxPacket = 65520

// packetReader reads the packets that Git's protocol consists of: four hexadecimal digits of length, then that much.
type packetReader struct {
	from     io.Reader
	left     int64
	tooLarge error
	scrub    func(string) string
	buffer   [maxPacket]byte
}

// Read reads bytes that are not in packets.
func (p *packetReader) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, p.tooLarge
	}
	n, err := p.from.Read(b[:min(int64(len(b)), p.left)])
	p.left -= int64(n)
	return n, err
}

// next returns a packet that is valid until the one after it is read. An end where a packet could be is not expected.
func (p *packetReader) next() ([]byte, packetKind, error) {
	head := p.buffer[:4]
	if _, err := io.ReadFull(p, head); err != nil {
		return nil, 0, cutShort(err)
	}
	length, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil || length > maxPacket || length == 3:
		return nil, 0, errGitProtocol
	case length == 0:
		return nil, flushPacket, nil
	case length < 4: // 2 ends an answer over SSH, which no caller needs to know
		return nil, delimiterPacket, nil
	}
	payload := p.buffer[:length-4]
	if _, err := io.ReadFull(p, payload); err != nil {
		return nil, 0, cutShort(err)
	}
	return payload, dataPacket, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutShort
	}
	return err
}

// line is next for text. Error lines of the server become errors.
func (p *packetReader) line() (string, packetKind, error) {
	payload, kind, err := p.next()
	if err != nil {
		return "", 0, err
	}
	if text, ok := bytes.CutPrefix(payload, []byte("ERR ")); ok {
		return "", 0, &remoteError{text: p.show(text)}
	}
	return string(bytes.TrimSuffix(payload, []byte("\n"))), kind, nil
}

func (p *packetReader) show(text []byte) string {
	return finding.OneLine(p.scrub(string(text)), fetch.MaxErrorText)
}

// packetWriter writes a request.
type packetWriter struct{ bytes.Buffer }

func (w *packetWriter) line(text string) { w.WriteString(fmt.Sprintf("%04x%s\n", len(text)+5, text)) }

func (w *packetWriter) flush() { w.WriteString("0000") }

func (w *packetWriter) delimit() { w.WriteString("0001") }
