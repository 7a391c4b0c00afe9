package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
)

// signatories hold the keys that sign charts in the scripts.
type signatories struct {
	keys            map[string]*signing.Key
	pgp             map[string]*signing.PGPKey
	ssh             map[string]*signing.SSHKey
	sigstore, other *signing.Sigstore
	notation        map[string]*signing.Authority
}

// theSignatories are made on first use.
var theSignatories = sync.OnceValues(func() (*signatories, error) {
	s := &signatories{keys: map[string]*signing.Key{}, pgp: map[string]*signing.PGPKey{}, ssh: map[string]*signing.SSHKey{}, notation: map[string]*signing.Authority{}}
	for name, kind := range map[string]string{
		"cosign": "ecdsa", "other": "ecdsa", "ecdsa384": "ecdsa384", "rsa": "rsa", "ed25519": "ed25519",
	} {
		var err error
		if s.keys[name], err = signing.NewKey(kind); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"notation", "other-notation"} {
		var err error
		if s.notation[name], err = signing.NewAuthority(name); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"pgp", "other-pgp"} {
		var err error
		if s.pgp[name], err = signing.NewPGPKey("The "+name+" key", name+"@example.org", signing.Earlier()); err != nil {
			return nil, err
		}
	}
	var err error
	for _, name := range []string{"ssh", "other-ssh"} {
		if s.ssh[name], err = signing.NewSSHKey(); err != nil {
			return nil, err
		}
	}
	if s.sigstore, err = signing.NewSigstore(); err != nil {
		return nil, err
	}
	s.other, err = signing.NewSigstore()
	return s, err
})

// signatures reads the file `signatures` of a server's directory. Each line of it is
//
//	WHAT WHO [option...]
//
// WHAT is REPOSITORY:TAG in a registry, and the name of an archive in a Helm repository. WHO is the name of a key,
// `keyless`, `notation`, or a PGP key, which makes a provenance file.
func signatures(dir string, each func(s *signatories, args []string) error) error {
	text, err := os.ReadFile(filepath.Join(dir, "signatures"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := theSignatories()
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(line)
		if len(args) == 0 {
			continue
		}
		if len(args) == 1 {
			return fmt.Errorf("signatures:%d: want what is signed and who signs it", i+1)
		}
		if err := each(s, args); err != nil {
			return fmt.Errorf("signatures:%d: %w", i+1, err)
		}
	}
	return nil
}

// signIn returns a function that signs the charts of a registry.
func signIn(w *helmtest.World) func(*registry.Registry, string) error {
	return func(r *registry.Registry, dir string) error {
		return signatures(dir, func(s *signatories, args []string) error {
			if s.pgp[args[1]] != nil {
				return nil
			}
			return s.sign(w, r, args)
		})
	}
}

// signArchives adds provenance files to the charts for a registry.
func signArchives(charts []helmtest.Published, dir string) error {
	return signatures(dir, func(s *signatories, args []string) error {
		key := s.pgp[args[1]]
		if key == nil {
			return nil
		}
		at := func(chart string) int {
			return slices.IndexFunc(charts, func(p helmtest.Published) bool { return p.Repository+":"+p.Tag == chart })
		}
		i, of, err := signed(args, at)
		if err != nil {
			return err
		}
		m := charts[i].Metadata
		charts[i].ProvenanceFile, err = key.Sign(charts[of].Archive, m.Name+"-"+m.Version+".tgz")
		return err
	})
}

// signed returns the positions of the signed chart and of the chart in its provenance file, which differs with the option of=.
func signed(args []string, at func(string) int) (i, of int, err error) {
	i = at(args[0])
	of = i
	for _, word := range args[2:] {
		other, ok := strings.CutPrefix(word, "of=")
		if !ok {
			return 0, 0, fmt.Errorf("unknown option %q", word)
		}
		of = at(other)
	}
	if i < 0 || of < 0 {
		return 0, 0, errors.New("no such chart")
	}
	return i, of, nil
}

// signedRepository returns a kind of Helm repositories with provenance files.
func signedRepository(kind helmtest.Kind) helmtest.Kind {
	return func(w *helmtest.World, name, dir string, c *helmtest.Config) (http.Handler, error) {
		files, err := helmtest.ReadRepository(dir)
		if err != nil {
			return nil, err
		}
		names := slices.Sorted(maps.Keys(files))
		at := func(file string) int { return slices.Index(names, "/"+file) }
		err = signatures(dir, func(s *signatories, args []string) error {
			i, of, err := signed(args, at)
			if err != nil {
				return err
			}
			key := s.pgp[args[1]]
			if key == nil {
				return fmt.Errorf("nobody is called %q", args[1])
			}
			prov, err := key.Sign(files[names[of]], path.Base(names[i]))
			if err != nil {
				return err
			}
			return writeFile(filepath.Join(dir, filepath.FromSlash(names[i][1:]+".prov")), prov)
		})
		if err != nil {
			return nil, err
		}
		return kind(w, name, dir, c)
	}
}

// signGit signs the commit and makes the signed tags of a Git repository. WHAT is `commit`, or the name of a tag; WHO a PGP or
// SSH key, or `nobody` for an annotated tag alone. With the option `forged` the signature of a commit is that of another text,
// `as=NAME` signs a tag under another name.
func signGit(g *helmtest.Git, dir string) error {
	return signatures(dir, func(s *signatories, args []string) error {
		signer, err := s.gitSigner(args[1])
		if err != nil {
			return err
		}
		name, option := args[0], strings.Join(args[2:], " ")
		if name == "commit" {
			return g.SignCommit(signer, option == "forged")
		}
		signed, found := strings.CutPrefix(option, "as=")
		if !found {
			signed = name
		}
		return g.SignTag(name, signed, signer)
	})
}

func (s *signatories) gitSigner(who string) (helmtest.GitSigner, error) {
	switch {
	case who == "nobody":
		return nil, nil
	case s.pgp[who] != nil:
		return s.pgp[who], nil
	case s.ssh[who] != nil:
		return s.ssh[who], nil
	}
	return nil, fmt.Errorf("nobody is called %q", who)
}

func (s *signatories) sign(w *helmtest.World, r *registry.Registry, args []string) error {
	t, err := target(r, args[0])
	if err != nil {
		return err
	}
	options := map[string]string{}
	for _, word := range args[2:] {
		key, value, _ := strings.Cut(word, "=")
		options[key] = value
	}
	if of, ok := options["claim"]; ok {
		claimed, err := target(r, of)
		if err != nil {
			return err
		}
		t.Claim = claimed.Digest
		delete(options, "claim")
	}
	if args[1] == "keyless" {
		return s.signKeyless(t, options)
	}
	if a := s.notation[args[1]]; a != nil {
		return signNotation(w, a, t, options)
	}
	return s.signWithKey(t, args[1], options)
}

// target returns the repository and digest of a chart.
func target(r *registry.Registry, chart string) (signing.Target, error) {
	repository, _, _ := strings.Cut(chart, ":")
	t := signing.Target{
		Repository: r.Host() + "/" + repository,
		Insecure:   true, // its transport makes no connection
		Transport:  r.Transport(repository),
	}
	ref, err := name.ParseReference(r.Host()+"/"+chart, name.Insecure)
	if err != nil {
		return t, err
	}
	d, err := remote.Get(ref, remote.WithTransport(t.Transport))
	if err != nil {
		return t, err
	}
	t.Digest = d.Digest.String()
	return t, nil
}

func (s *signatories) signWithKey(t signing.Target, who string, options map[string]string) error {
	key, ok := s.keys[who]
	if !ok {
		return fmt.Errorf("nobody is called %q", who)
	}
	switch _, bundle := options["bundle"]; {
	case bundle && len(options) == 1:
		return key.SignBundle(t)
	case len(options) == 0:
		return key.Sign(t)
	}
	return fmt.Errorf("unknown options in %v", options)
}

// signKeyless supports the options subject= issuer= bundle other nosct nolog otherlog logother late timestamp nopromise.
func (s *signatories) signKeyless(t signing.Target, options map[string]string) error {
	flag := func(key string) bool {
		_, ok := options[key]
		delete(options, key)
		return ok
	}
	k := signing.Keyless{
		Subject:   cmp.Or(options["subject"], "release@example.org"),
		Issuer:    cmp.Or(options["issuer"], "https://issuer.example.org"),
		NoSCT:     flag("nosct"),
		NoLog:     flag("nolog"),
		OtherLog:  flag("otherlog"),
		LogOther:  flag("logother"),
		Timestamp: flag("timestamp"),
		NoPromise: flag("nopromise"),
	}
	if flag("late") {
		k.LoggedAfter = time.Hour
	}
	delete(options, "subject")
	delete(options, "issuer")
	authority, bundle := s.sigstore, flag("bundle")
	if flag("other") {
		authority = s.other
	}
	switch {
	case len(options) > 0:
		return fmt.Errorf("unknown options %v", options)
	case bundle:
		return authority.SignBundle(t, k)
	}
	return authority.Sign(t, k)
}

// signNotation supports the options cose, expired (the certificate was valid at the time of the signature), ocsp (the
// certificate names a server, http://ocsp.test) and revoked.
func signNotation(w *helmtest.World, a *signing.Authority, t signing.Target, options map[string]string) error {
	has := func(key string) bool { _, ok := options[key]; return ok }
	form, from, days, server := signing.JWS, time.Now().Add(-time.Hour), 30, ""
	if has("cose") {
		form = signing.COSE
	}
	if has("expired") {
		from, days = time.Now().Add(-72*time.Hour), 1
	}
	if has("ocsp") || has("revoked") {
		server = "http://ocsp.test"
		if _, running := w.Servers["ocsp"]; !running {
			if err := w.Serve("ocsp", &helmtest.Config{Addr: "ocsp.test:80"}, a.OCSP()); err != nil {
				return err
			}
		}
	}
	n, err := a.Issue("signer", from, days, server)
	if err != nil {
		return err
	}
	if has("revoked") {
		n.Revoke()
	}
	return n.SignAt(context.Background(), t, form, from.Add(time.Minute), time.Time{})
}

// policy returns a trust policy of notation.
func policy(level string) []byte {
	return fmt.Appendf(nil, `{"version": "1.0", "trustPolicies": [{"name": "charts", "registryScopes": ["*"],
		"signatureVerification": {"level": %q}, "trustStores": ["ca:charts"], "trustedIdentities": ["*"]}]}`, level)
}

// writeSigning writes the public keys and policies for the signatures of a script to signing/, if it has any.
func writeSigning(work string) error {
	needed, err := filepath.Glob(filepath.Join(work, "*", "signatures"))
	if err != nil || len(needed) == 0 {
		return err
	}
	s, err := theSignatories()
	if err != nil {
		return err
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	for file, content := range files {
		if err := writeFile(filepath.Join(work, "signing", file), content); err != nil {
			return err
		}
	}
	return nil
}

// files returns public keys and trusted roots: PEM and JSON, and Secrets that have the name of their file.
func (s *signatories) files() (map[string][]byte, error) {
	files, secrets := map[string][]byte{}, map[string]map[string][]byte{}
	for name, key := range s.keys {
		files[name+".pub"] = key.Public
		secrets[name] = map[string][]byte{name + ".pub": key.Public}
	}
	secrets["several"] = map[string][]byte{
		"a.pub": s.keys["other"].Public, "b.pub": s.keys["ed25519"].Public, "c.pub": s.keys["cosign"].Public,
	}
	secrets["unnamed"] = map[string][]byte{"cosign.pem": s.keys["cosign"].Public}
	for name, authority := range map[string]*signing.Sigstore{"trusted-root": s.sigstore, "other-root": s.other} {
		root, err := authority.TrustedRoot()
		if err != nil {
			return nil, err
		}
		files[name+".json"] = root
		secrets[name] = map[string][]byte{"trusted_root.json": root}
	}
	for _, level := range []string{"strict", "permissive", "audit", "skip"} {
		secrets["notation-"+level] = map[string][]byte{
			"trustpolicy.json": policy(level), "ca.crt": s.notation["notation"].Certificate,
		}
	}
	secrets["notation-several"] = map[string][]byte{
		"trustpolicy.json": policy("strict"), "a.crt": s.notation["other-notation"].Certificate, "b.pem": s.notation["notation"].Certificate,
	}
	secrets["other-notation"] = map[string][]byte{
		"trustpolicy.json": policy("strict"), "ca.crt": s.notation["other-notation"].Certificate,
	}
	secrets["no-policy"] = map[string][]byte{"ca.crt": s.notation["notation"].Certificate}
	for name, key := range s.pgp {
		var err error
		if files[name+".gpg"], err = key.Keyring(); err != nil {
			return nil, err
		}
	}
	if err := s.gitKeys(secrets); err != nil {
		return nil, err
	}
	for name, values := range secrets {
		files[name+".yaml"] = helmtest.Secret(name, values)
	}
	return files, nil
}

// gitKeys adds the Secrets for signatures of commits and tags: one for each key, and `git`, which has two.
func (s *signatories) gitKeys(secrets map[string]map[string][]byte) error {
	secrets["git"] = map[string][]byte{}
	for name, key := range s.pgp {
		armored, err := key.Armored()
		if err != nil {
			return err
		}
		secrets[name] = map[string][]byte{name + ".asc": armored}
	}
	for name, key := range s.ssh {
		secrets[name] = map[string][]byte{name + ".sshpub": key.Authorized()}
	}
	for _, name := range []string{"pgp", "ssh"} {
		maps.Copy(secrets["git"], secrets[name])
	}
	return nil
}
