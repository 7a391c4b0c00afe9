package digest_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// helloHex is the SHA-256 of "hello".
const helloHex = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func TestParse(t *testing.T) {
	upper := strings.ToUpper(helloHex)
	sha512 := "sha512:" + strings.Repeat("ab", 64)
	tests := []struct {
		in            string
		strict, loose digest.Digest
	}{
		{"sha256:" + helloHex, "sha256:" + helloHex, "sha256:" + helloHex},
		{sha512, digest.Digest(sha512), digest.Digest(sha512)},
		{helloHex, "", "sha256:" + helloHex},
		{upper, "", "sha256:" + helloHex},
		{"sha256:" + upper, "", "sha256:" + helloHex},
		{"SHA256:" + helloHex, "", "sha256:" + helloHex},
		{"", "", ""},
		{":", "", ""},
		{"sha256:", "", ""},
		{"sha256:" + helloHex[1:], "", ""},
		{"sha256:" + helloHex + "0", "", ""},
		{"sha256:g" + helloHex[1:], "", ""},
		{" " + helloHex, "", ""},
		{helloHex + "\n", "", ""},
		{"sha1:" + helloHex[:40], "", ""},
		{"md5:5d41402abc4b2a76b9719d911017c592", "", ""},
		{"sha256:sha256:" + helloHex, "", ""},
	}
	for _, test := range tests {
		for _, f := range []struct {
			name  string
			parse func(string) (digest.Digest, error)
			want  digest.Digest
		}{{"Parse", digest.Parse, test.strict}, {"ParseLoose", digest.ParseLoose, test.loose}} {
			got, err := f.parse(test.in)
			if got != f.want || (err == nil) != (f.want != "") {
				t.Errorf("%s(%q) = %q, %v, want %q", f.name, test.in, got, err, f.want)
			}
			var malformed *digest.MalformedError
			if err != nil && (!errors.As(err, &malformed) || malformed.Value != test.in) {
				t.Errorf("%s(%q): error %#v is no MalformedError of that value", f.name, test.in, err)
			}
		}
	}
}

func TestMalformedErrorIsBounded(t *testing.T) {
	_, err := digest.Parse(strings.Repeat("x\n", 1<<20))
	if n := len(err.Error()); n > 1000 {
		t.Errorf("error text has %d bytes", n)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("error text holds control characters")
	}
}

func TestWriter(t *testing.T) {
	for _, a := range []godigest.Algorithm{godigest.SHA256, godigest.SHA384, godigest.SHA512} {
		w := digest.NewWriter(a)
		_, _ = io.WriteString(w, "forget this")
		w.Reset()
		_, _ = io.WriteString(w, "hel")
		_ = w.Digest()
		_, _ = io.WriteString(w, "lo")
		if got, want := w.Digest(), a.FromString("hello"); got != want || w.Size() != 5 {
			t.Errorf("%s: digest %s, size %d, want %s, 5", a, got, w.Size(), want)
		}
	}
}

func TestReader(t *testing.T) {
	const want = "sha256:" + helloHex
	wrappers := map[string]func(io.Reader) io.Reader{
		"plain":        func(r io.Reader) io.Reader { return r },
		"one byte":     iotest.OneByteReader,
		"data and EOF": iotest.DataErrReader,
		"short reads":  iotest.HalfReader,
	}
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			b, err := io.ReadAll(digest.NewReader(wrap(strings.NewReader("hello")), want))
			if string(b) != "hello" || err != nil {
				t.Errorf("right bytes: %q, %v", b, err)
			}
			for _, wrong := range []string{"", "hell", "hello!", "jello"} {
				r := digest.NewReader(wrap(strings.NewReader(wrong)), want)
				b, err := io.ReadAll(r)
				if string(b) != wrong {
					t.Errorf("read %q, want %q", b, wrong)
				}
				checkMismatch(t, err, wrong)
				_, err = r.Read(make([]byte, 1))
				checkMismatch(t, err, wrong)
			}
		})
	}
}

func checkMismatch(t *testing.T, err error, body string) {
	t.Helper()
	var mismatch *digest.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("error %v, want a MismatchError", err)
	}
	if got := godigest.FromString(body); mismatch.Got != got || mismatch.Want != "sha256:"+helloHex {
		t.Errorf("want %s got %s", mismatch.Want, mismatch.Got)
	}
	text := "computed digest doesn't match 'sha256:" + helloHex + "': got '" + mismatch.Got.String() + "'"
	if err.Error() != text {
		t.Errorf("text %q, want %q", err, text)
	}
}

// endlessly returns io.EOF after its first byte, but then continues.
type endlessly struct{ reads int }

func (e *endlessly) Read(p []byte) (int, error) {
	e.reads++
	p[0] = 'x'
	if e.reads == 1 {
		return 1, io.EOF
	}
	return 1, nil
}

func TestReaderEndsOnce(t *testing.T) {
	r := digest.NewReader(&endlessly{}, godigest.FromString("x"))
	if b, err := io.ReadAll(r); string(b) != "x" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes after the end, %v", n, err)
	}
}

func TestReaderPassesOtherErrorsOn(t *testing.T) {
	broken := errors.New("connection reset")
	r := digest.NewReader(io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(broken)), "sha256:"+helloHex)
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); !errors.Is(err, broken) || b.String() != "hel" {
		t.Errorf("read %q, %v", b.String(), err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, broken) {
		t.Errorf("second read: %v", err)
	}
}

func TestReaderOfMalformedDigestNeverPasses(t *testing.T) {
	for _, bad := range []digest.Digest{"", helloHex, digest.Digest("sha1:" + helloHex[:40])} {
		b, err := io.ReadAll(digest.NewReader(strings.NewReader("hello"), bad))
		var malformed *digest.MalformedError
		if len(b) != 0 || !errors.As(err, &malformed) {
			t.Errorf("%q: read %q, %v", bad, b, err)
		}
	}
}
