package git

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func pgpKey(t *testing.T) (*openpgp.Entity, []byte) {
	t.Helper()
	e, err := openpgp.NewEntity("helmtest", "", "helmtest@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return e, b.Bytes()
}

// sshKey returns a file with a private key, the public one, and its fingerprint.
func sshKey(t *testing.T) (string, []byte, string) {
	t.Helper()
	private, signer, err := helmtest.NewSSHKey("")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, private, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, ssh.MarshalAuthorizedKey(signer.PublicKey()), ssh.FingerprintSHA256(signer.PublicKey())
}

func TestGitVerify(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "unsigned", map[string]string{"a": "1"})
	run(t, w.git, "tag", "-a", "-m", "x", "unsigned")
	run(t, w.git, "tag", "light")

	file, sshPub, sshID := sshKey(t)
	_, otherSSH, _ := sshKey(t)
	flags := []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + file}
	run(t, w.git, append(flags, "commit", "-q", "--allow-empty", "-S", "-m", "by ssh")...)
	run(t, w.git, append(flags, "tag", "-s", "-m", "by ssh", "ssh")...)
	run(t, w.git, "branch", "ssh")
	sshCommit, sshTag := run(t, w.git, "rev-parse", "ssh^{commit}"), run(t, w.git, "rev-parse", "refs/tags/ssh")
	// A signed tag under another name.
	run(t, w.git, "update-ref", "refs/tags/moved", sshTag)
	// A signature that is right, but of another commit.
	raw := run(t, w.git, "cat-file", "commit", sshCommit)
	forged := filepath.Join(t.TempDir(), "forged")
	if err := os.WriteFile(forged, []byte(strings.Replace(raw, "by ssh", "by me", 1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, w.git, "branch", "forged", run(t, w.git, "hash-object", "-t", "commit", "-w", forged))

	entity, pgpPub := pgpKey(t)
	_, otherPGP := pgpKey(t)
	repo, err := git.PlainOpen(w.git.Dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	who := &object.Signature{Name: "helmtest", Email: "helmtest@example.com", When: helmtest.Created}
	hash, err := tree.Commit("by pgp", &git.CommitOptions{Author: who, SignKey: entity, AllowEmptyCommits: true})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := repo.CreateTag("pgp", hash, &git.CreateTagOptions{Tagger: who, Message: "by pgp", SignKey: entity})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Storer.SetReference(plumbing.NewHashReference("refs/heads/pgp", hash)); err != nil {
		t.Fatal(err)
	}
	pgpID := entity.PrimaryKey.KeyIdString()

	keys := func(pairs ...any) map[string][]byte {
		m := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1].([]byte)
		}
		return m
	}
	for _, v := range []struct {
		name   string
		ref    Ref
		verify Verification
		want   string // the message, or the reason
		stall  bool
	}{
		{"ssh commit", Ref{Branch: "ssh"}, Verification{"HEAD", keys("a.sshpub", otherSSH, "b.sshpub", sshPub)},
			"verified signature of\n\t- commit '" + sshCommit + "' with key '" + sshID + "'", false},
		{"ssh keys in one file", Ref{Branch: "ssh"}, Verification{"head", keys("a.sshpub", append(bytes.Clone(otherSSH), sshPub...))},
			"verified signature of\n\t- commit '" + sshCommit + "' with key '" + sshID + "'", false},
		{"ssh tag", Ref{Tag: "ssh"}, Verification{"Tag", keys("b.sshpub", sshPub)},
			"verified signature of\n\t- tag 'ssh@sha1:" + sshTag + "' with key '" + sshID + "'", false},
		{"ssh both", Ref{Tag: "ssh"}, Verification{"TagAndHEAD", keys("b.sshpub", sshPub)},
			"verified signature of\n\t- tag 'ssh@sha1:" + sshTag + "' with key '" + sshID + "'\n\t- commit '" + sshCommit + "' with key '" + sshID + "'", false},
		{"pgp commit", Ref{Branch: "pgp"}, Verification{"HEAD", keys("a.asc", otherPGP, "b.asc", pgpPub)},
			"verified signature of\n\t- commit '" + hash.String() + "' with key '" + pgpID + "'", false},
		{"pgp both, legacy key name", Ref{Name: "refs/tags/pgp"}, Verification{"TagAndHEAD", keys("author", pgpPub)},
			"verified signature of\n\t- tag 'pgp@sha1:" + tag.Hash().String() + "' with key '" + pgpID + "'\n\t- commit '" + hash.String() + "' with key '" + pgpID + "'", false},
		{"other ssh key", Ref{Branch: "ssh"}, Verification{"HEAD", keys("a.sshpub", otherSSH, "b.asc", pgpPub)}, "InvalidCommitSignature", false},
		{"other pgp key", Ref{Branch: "pgp"}, Verification{"HEAD", keys("a.asc", otherPGP, "b.sshpub", sshPub)}, "InvalidCommitSignature", false},
		{"no keys", Ref{Branch: "pgp"}, Verification{"HEAD", nil}, "InvalidCommitSignature", false},
		{"unsigned commit", Ref{Tag: "unsigned"}, Verification{"HEAD", keys("b.sshpub", sshPub)}, "InvalidCommitSignature", false},
		{"forged", Ref{Branch: "forged"}, Verification{"HEAD", keys("b.sshpub", sshPub)}, "InvalidCommitSignature", false},
		{"unsigned tag", Ref{Tag: "unsigned"}, Verification{"Tag", keys("b.sshpub", sshPub)}, "InvalidTagSignature", false},
		{"other tag's signature", Ref{Tag: "moved"}, Verification{"Tag", keys("b.sshpub", sshPub)}, "InvalidTagSignature", false},
		{"light tag", Ref{Tag: "light"}, Verification{"Tag", keys("b.sshpub", sshPub)}, "InvalidGitObject", false},
		{"no tag", Ref{Branch: "ssh"}, Verification{"TagAndHEAD", keys("b.sshpub", sshPub)}, "InvalidVerificationMode", true},
		{"bad key", Ref{Branch: "ssh"}, Verification{"HEAD", keys("b.sshpub", []byte("s3cret"))}, "VerificationError", false},
		{"bad pgp key", Ref{Branch: "ssh"}, Verification{"HEAD", keys("b.asc", []byte("s3cret"))}, "VerificationError", false},
	} {
		t.Run(v.name, func(t *testing.T) {
			tree, err := w.clone(t, Options{Ref: v.ref, Verify: &v.verify})
			if err == nil {
				if tree.Verified != v.want {
					t.Errorf("got %q, want %q", tree.Verified, v.want)
				}
				return
			}
			var e *VerificationError
			if !errors.As(err, &e) || e.Reason != v.want || e.Stalled != v.stall || fetch.Transient(err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %s", err, v.want)
			}
		})
	}
	t.Run("an artifact that is there is verified again", func(t *testing.T) {
		_, err := w.clone(t, Options{Ref: Ref{Branch: "ssh"}, Unless: "ssh@sha1:" + sshCommit, Verify: &Verification{"HEAD", keys("a.sshpub", otherSSH)}})
		var e *VerificationError
		if !errors.As(err, &e) {
			t.Errorf("error %v", err)
		}
	})
}
