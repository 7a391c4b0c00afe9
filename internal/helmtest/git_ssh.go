package helmtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// GitSSH is an SSH server that gives one key read access to the repositories below a directory.
type GitSSH struct {
	Identity   []byte // PEM, of the accepted key
	Encrypted  []byte // the same, encrypted with SSHPassphrase
	KnownHosts []byte // a line for known_hosts
	User       string // the last user who logged in

	root     string
	version2 bool
	config   *ssh.ServerConfig
	listener net.Listener
}

// ServeGitSSH starts a server at addr, a name and port. Without version2 clients cannot set variables, as on many servers, so
// that they use the old version of the protocol.
func ServeGitSSH(n *Network, addr, root string, version2 bool) (*GitSSH, error) {
	_, host, err := NewSSHKey("")
	if err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	client, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	s := &GitSSH{root: root, version2: version2}
	for into, passphrase := range map[*[]byte]string{&s.Identity: "", &s.Encrypted: SSHPassphrase} {
		block, err := marshalKey(key, passphrase)
		if err != nil {
			return nil, err
		}
		*into = pem.EncodeToMemory(block)
	}
	s.KnownHosts = []byte(knownHost(addr) + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey())))
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.User = c.User()
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	s.config.AddHostKey(host)
	if s.listener, err = n.Listen(addr); err != nil {
		return nil, err
	}
	go s.serve()
	return s, nil
}

// SSHPassphrase is the passphrase of the encrypted identities.
const SSHPassphrase = "ssh-passphrase-of-the-tests"

// unknownHost returns a line for known_hosts with another key for a host.
func unknownHost(host string) ([]byte, error) {
	_, key, err := NewSSHKey("")
	if err != nil {
		return nil, err
	}
	return []byte(host + " " + string(ssh.MarshalAuthorizedKey(key.PublicKey()))), nil
}

// Close ends the server.
func (s *GitSSH) Close() { _ = s.listener.Close() }

func knownHost(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if port == "22" {
		return host
	}
	return "[" + host + "]:" + port
}

// NewSSHKey returns a new key that no server knows, in PEM, encrypted if there is a passphrase.
func NewSSHKey(passphrase string) ([]byte, ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := marshalKey(key, passphrase)
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	return pem.EncodeToMemory(block), signer, err
}

func marshalKey(key ed25519.PrivateKey, passphrase string) (*pem.Block, error) {
	if passphrase == "" {
		return ssh.MarshalPrivateKey(key, "helmtest")
	}
	return ssh.MarshalPrivateKeyWithPassphrase(key, "helmtest", []byte(passphrase))
}

func (s *GitSSH) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.connection(c)
	}
}

func (s *GitSSH) connection(c net.Conn) {
	defer c.Close()
	conn, channels, requests, err := ssh.NewServerConn(c, s.config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		if ch.ChannelType() != "session" {
			_ = ch.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, asks, err := ch.Accept()
		if err != nil {
			return
		}
		go s.session(channel, asks)
	}
}

func (s *GitSSH) session(channel ssh.Channel, asks <-chan *ssh.Request) {
	defer channel.Close()
	env := gitEnv()
	for ask := range asks {
		switch ask.Type {
		case "env":
			var v struct{ Name, Value string }
			ok := ssh.Unmarshal(ask.Payload, &v) == nil && s.version2 && v.Name == "GIT_PROTOCOL"
			if ok {
				env = append(env, v.Name+"="+v.Value)
			}
			_ = ask.Reply(ok, nil)
		case "exec":
			var v struct{ Command string }
			ok := ssh.Unmarshal(ask.Payload, &v) == nil
			_ = ask.Reply(ok, nil)
			if ok {
				s.run(channel, v.Command, env)
			}
			return
		default:
			_ = ask.Reply(false, nil)
		}
	}
}

// run runs upload-pack. It refuses other commands.
func (s *GitSSH) run(channel ssh.Channel, command string, env []string) {
	status := struct{ Code uint32 }{128}
	dir, ok := strings.CutPrefix(command, "git-upload-pack '")
	if ok {
		dir = strings.ReplaceAll(strings.TrimSuffix(dir, "'"), `'\''`, "'")
		cmd := exec.CommandContext(context.Background(), "git", "upload-pack", filepath.Join(s.root, filepath.FromSlash(dir)))
		cmd.Env, cmd.Stdout, cmd.Stderr = env, channel, channel.Stderr()
		// With the channel as its Stdin the command would not end before the client closes it.
		if in, err := cmd.StdinPipe(); err == nil && cmd.Start() == nil {
			go func() {
				_, _ = io.Copy(in, channel)
				_ = in.Close()
			}()
			if cmd.Wait() == nil {
				status.Code = 0
			}
		}
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
}
