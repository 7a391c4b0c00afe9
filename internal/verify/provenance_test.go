package verify_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/signing"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func newPGPKey(t *testing.T, c *packet.Config) (*signing.PGPKey, *verify.Keyring) {
	t.Helper()
	k, err := signing.NewPGPKey("Chart Signer", "signer@example.com", c)
	must(t, err)
	text, err := k.Keyring()
	must(t, err)
	ring, err := verify.ParseKeyring(text)
	must(t, err)
	return k, ring
}

func archive(t *testing.T) []byte {
	t.Helper()
	b, err := helmtest.NewChart("app", "1.0.0").Package()
	must(t, err)
	return b
}

func TestProvenance(t *testing.T) {
	key, ring := newPGPKey(t, nil)
	_, otherRing := newPGPKey(t, nil)
	chart := archive(t)
	const file = "app-1.0.0.tgz"
	prov, err := key.Sign(chart, file)
	must(t, err)

	got, err := verify.Provenance(bytes.NewReader(chart), file, prov, ring)
	must(t, err)
	if got.Identity != "Chart Signer <signer@example.com>" || len(got.Key) < 40 || got.Format != verify.FormatProvenance || time.Since(got.Time) > time.Hour {
		t.Errorf("got %+v", got)
	}

	for name, test := range map[string]struct {
		archive    []byte
		file       string
		provenance []byte
		ring       *verify.Keyring
		want       string
	}{
		"wrong hash":         {append(bytes.Clone(chart), 0), file, prov, ring, "sha256 sum does not match for app-1.0.0.tgz"},
		"another file":       {chart, "app-2.0.0.tgz", prov, ring, `provenance does not contain a SHA for a file named "app-2.0.0.tgz"`},
		"another key":        {chart, file, prov, otherRing, "signature made by unknown entity"},
		"tampered":           {chart, file, bytes.Replace(prov, []byte("name: app"), []byte("name: bpp"), 1), ring, "signature"},
		"tampered hash":      {chart, file, bytes.Replace(prov, []byte("sha256:"), []byte("sha256:0"), 1), ring, "signature"},
		"no signature block": {chart, file, []byte("files:\n  app-1.0.0.tgz: sha256:x\n"), ring, "signature block not found"},
		"cut off":            {chart, file, prov[:len(prov)/2], ring, "signature"},
		"none":               {chart, file, nil, ring, "there is no provenance file for app-1.0.0.tgz"},
		"huge":               {chart, file, bytes.Repeat([]byte("x"), 2<<20), ring, "exceeds the limit of 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verify.Provenance(bytes.NewReader(test.archive), test.file, test.provenance, test.ring)
			refused(t, err, test.want)
		})
	}

	// The archive's own failure is not a verdict.
	broken := errors.New("broken")
	_, err = verify.Provenance(iotest.ErrReader(broken), file, prov, ring)
	undecided(t, err)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestProvenanceExpiredKey(t *testing.T) {
	past := func() time.Time { return time.Now().AddDate(0, 0, -10) }
	key, ring := newPGPKey(t, &packet.Config{Time: past, KeyLifetimeSecs: 3600})
	prov, err := key.Sign(archive(t), "app-1.0.0.tgz")
	must(t, err)
	_, err = verify.Provenance(bytes.NewReader(archive(t)), "app-1.0.0.tgz", prov, ring)
	refused(t, err, "expired")
}

func TestParseKeyring(t *testing.T) {
	key, _ := newPGPKey(t, nil)
	text, err := key.Keyring()
	must(t, err)
	var armored bytes.Buffer
	w, err := armor.Encode(&armored, openpgp.PublicKeyType, nil)
	must(t, err)
	_, err = w.Write(text)
	must(t, err)
	must(t, w.Close())
	_, err = verify.ParseKeyring(armored.Bytes())
	must(t, err)
	for _, content := range []string{"", "garbage", "\x00\x00\x00\x20\x01\x01\x00\x02KBXf\x00\x00\x00\x00"} {
		_, err := verify.ParseKeyring([]byte(content))
		var settings *verify.SettingsError
		if !errors.As(err, &settings) || strings.Contains(content, "KBXf") != strings.Contains(hint(err), "gpg --export") {
			t.Errorf("%q: got %v, hint %q", content, err, hint(err))
		}
	}
}
