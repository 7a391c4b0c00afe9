package git

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/net/proxy"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

const (
	sshPort        = "22"
	sshUser        = "git"
	sshDialTimeout = 30 * time.Second
)

// gitSSH is a repository on an SSH server.
type gitSSH struct {
	url     *url.URL
	client  *ssh.Client
	session *gitSession
	stop    func() bool
}

// A gitSession is one run of upload-pack. If it ends without output, the reason is on stderr.
type gitSession struct {
	*ssh.Session
	url  *url.URL
	in   io.WriteCloser
	out  io.Reader
	said remarks
	some bool // output
	asks int
	v2   bool
}

// openSSH connects with the values of the Secret only: no agent, no configuration and no known hosts of the user's.
func (c *clone) openSSH(ctx context.Context, u *url.URL, login *Login) (*gitSSH, error) {
	s := login.reveal()
	if s.Signer == nil {
		return nil, errNoIdentity
	}
	hosts, err := readKnownHosts(c.options.TempDir, s.KnownHosts)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = sshPort
	}
	addr := net.JoinHostPort(u.Hostname(), port)
	raw, err := c.dialSSH(ctx, addr)
	if err != nil {
		return nil, fetch.NewRequestError(ctx, u.String(), err)
	}
	// The ssh package knows no contexts: closing the connection ends all waits for it.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	client, err := handshake(raw, addr, sshConfig(u, s, hosts))
	if err != nil {
		stop()
		_ = raw.Close()
		if ctx.Err() != nil {
			err = fetch.EndOf(ctx)
		}
		return nil, err
	}
	return &gitSSH{url: u, client: client, stop: stop}, nil
}

var errNoIdentity = notTrusted("no identity", finding.SSHLogin)

// notTrusted reports that one side does not trust the other.
func notTrusted(text, hint string) error {
	return &finding.Problem{Class: finding.Login | finding.Lasting, Text: "ssh: " + text, Advice: hint}
}

func (c *clone) dialSSH(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, sshDialTimeout)
	defer cancel()
	dial := c.client.Config.Dial
	if c.options.Proxy == nil {
		return dial(ctx, "tcp", addr)
	}
	address := c.options.Proxy.URL()
	if !strings.HasPrefix(address.Scheme, "socks5") {
		return nil, fetch.NotSupported("SSH through a proxy that is not a SOCKS5 proxy")
	}
	d, err := proxy.FromURL(address, contextDialer(dial))
	if err != nil {
		return nil, err
	}
	return d.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
}

type contextDialer func(ctx context.Context, network, addr string) (net.Conn, error)

func (d contextDialer) Dial(network, addr string) (net.Conn, error) {
	return d(context.Background(), network, addr)
}

func (d contextDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// readKnownHosts writes the text to a file because the knownhosts package only reads files.
func readKnownHosts(dir string, text []byte) (ssh.HostKeyCallback, error) {
	f, err := os.CreateTemp(dir, "helmsrc-known-hosts-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	check, err := knownhosts.New(f.Name())
	if err != nil {
		// The reason names the file, which is gone.
		return nil, notTrusted(finding.KnownHostsUnread, "")
	}
	return check, nil
}

// sshState records how far a handshake got: the ssh package has no types for its errors.
type sshState struct {
	config  *ssh.ClientConfig
	checked atomic.Bool
	refused atomic.Pointer[knownhosts.KeyError]
	revoked atomic.Bool
	offered atomic.Bool
}

func sshConfig(u *url.URL, s Keys, check ssh.HostKeyCallback) *sshState {
	state := &sshState{}
	user := u.User.Username()
	if user == "" {
		user = sshUser
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), sshPort)
	}
	state.config = &ssh.ClientConfig{
		User: user,
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			state.offered.Store(true)
			return []ssh.Signer{s.Signer}, nil
		})},
		// A server with several keys must offer a known one.
		HostKeyAlgorithms: knownAlgorithms(check, addr),
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			// The user has vouched for the name, not for its address.
			err := check(host, noAddr(host), key)
			var unknown *knownhosts.KeyError
			var revoked *knownhosts.RevokedError
			if errors.As(err, &unknown) {
				state.refused.Store(unknown)
			}
			state.revoked.Store(errors.As(err, &revoked))
			state.checked.Store(err == nil)
			return err
		},
		ClientVersion: "SSH-2.0-helmsrc",
	}
	return state
}

type noAddr string

func (a noAddr) Network() string { return "tcp" }

func (a noAddr) String() string { return string(a) }

// knownAlgorithms queries the known hosts with a key that no host has: the error names the known keys.
func knownAlgorithms(check ssh.HostKeyCallback, addr string) []string {
	var unknown *knownhosts.KeyError
	if !errors.As(check(addr, noAddr(addr), noKey{}), &unknown) {
		return nil
	}
	var list []string
	for _, k := range unknown.Want {
		switch kind := k.Key.Type(); kind {
		case ssh.KeyAlgoRSA:
			list = append(list, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			list = append(list, kind)
		}
	}
	return list
}

type noKey struct{}

func (noKey) Type() string { return "none" }

func (noKey) Marshal() []byte { return nil }

func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

func handshake(raw net.Conn, addr string, state *sshState) (*ssh.Client, error) {
	conn, channels, requests, err := ssh.NewClientConn(raw, addr, state.config)
	if err != nil {
		return nil, state.explain(addr, err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

func (s *sshState) explain(addr string, err error) error {
	host := strings.TrimSuffix(addr, ":"+sshPort)
	refused := s.refused.Load()
	var network net.Error
	switch {
	case s.revoked.Load():
		return notTrusted("the host key of "+host+" is revoked in known_hosts", "")
	case refused != nil && len(refused.Want) == 0:
		return notTrusted("host key verification failed: "+host+" is not in known_hosts", finding.KnownHosts)
	case refused != nil:
		return notTrusted("host key verification failed: the key of "+host+" differs from known_hosts", "")
	case s.checked.Load() && s.offered.Load() && !errors.As(err, &network) && !errors.Is(err, io.EOF):
		return notTrusted("unable to authenticate as "+s.config.User+": the server does not accept the identity", finding.SSHForbidden)
	}
	return fetch.DescribeRequest(context.Background(), "ssh://"+addr, err, func(err error) (text, advice string) {
		return finding.OneLine(err.Error(), fetch.MaxErrorText), ""
	})
}

func (s *gitSSH) Close() error {
	s.endSession()
	defer s.stop()
	return s.client.Close()
}

func (s *gitSSH) endSession() {
	if s.session != nil {
		_ = s.session.in.Close()
		_ = s.session.Close()
		s.session = nil
	}
}

// Advertise starts upload-pack. Servers that do not let clients set variables speak version 0.
func (s *gitSSH) Advertise(ctx context.Context) (io.ReadCloser, error) {
	s.endSession()
	session, err := s.client.NewSession()
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	run := &gitSession{Session: session, url: s.url}
	if run.in, err = session.StdinPipe(); err != nil {
		return nil, s.failed(ctx, err)
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	session.Stderr = &run.said
	_ = session.Setenv("GIT_PROTOCOL", gitProtocolVersion)
	if err := session.Start(uploadPack + " " + shellQuote(sshPath(s.url))); err != nil {
		return nil, s.failed(ctx, err)
	}
	run.out = &fetch.Body{
		Ctx: ctx, Raw: out, URL: s.url.String(), Left: math.MaxInt64,
		Progress: fetch.Progress{Total: -1},
	}
	s.session = run
	return io.NopCloser(run), nil
}

// Exchange continues the session of upload-pack after its advertisement. In version 0 a session takes one request.
func (s *gitSSH) Exchange(ctx context.Context, request []byte) (io.ReadCloser, error) {
	if s.session.asks > 0 && !s.session.v2 {
		if err := s.again(ctx); err != nil {
			return nil, err
		}
	}
	s.session.asks++
	s.session.v2 = strings.HasPrefix(string(request[4:]), "command=")
	if _, err := s.session.in.Write(request); err != nil {
		return nil, s.failed(ctx, err)
	}
	return io.NopCloser(s.session), nil
}

// again starts upload-pack again and skips its advertisement.
func (s *gitSSH) again(ctx context.Context) error {
	advertisement, err := s.Advertise(ctx)
	if err != nil {
		return err
	}
	p := newPackets(s, advertisement, listOfReferences, maxAdvertisement)
	for {
		if _, kind, err := p.next(); err != nil || kind == flushPacket {
			return err
		}
	}
}

func (s *gitSSH) scrub(text string) string { return auth.ScrubURL(text, s.url) }

func (s *gitSSH) failed(ctx context.Context, err error) error {
	return fetch.NewRequestError(ctx, s.url.String(), err)
}

// sshPath is the path as servers expect it: from the root, or from a user's directory.
func sshPath(u *url.URL) string {
	if strings.HasPrefix(u.Path, "/~") {
		return u.Path[1:]
	}
	return u.Path
}

// shellQuote quotes as Git does, also for shells in which an exclamation mark means something.
func shellQuote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

// maxRemarks is the limit, in bytes, of the server's remarks beside its answer.
const maxRemarks = 2 << 10

// remarks keeps the first maxRemarks bytes written to it. Reading waits for the writer to end.
type remarks struct {
	text  [maxRemarks]byte
	count atomic.Int64
}

func (r *remarks) Write(b []byte) (int, error) {
	n := r.count.Load()
	r.count.Store(n + int64(copy(r.text[n:], b)))
	return len(b), nil
}

// Read implements io.Reader.
func (s *gitSession) Read(b []byte) (int, error) {
	n, err := s.out.Read(b)
	s.some = s.some || n > 0
	if s.some || !errors.Is(err, io.EOF) {
		return n, err
	}
	_ = s.in.Close()
	_ = s.Wait() // its remarks are complete then
	text := finding.OneLine(auth.ScrubURL(string(s.said.text[:s.said.count.Load()]), s.url), fetch.MaxErrorText)
	if text == "" {
		return n, err
	}
	return n, &remoteError{text: text}
}
