package table

import (
	"strings"
	"testing"
)

// TestFit: no line is wider than the terminal, names in front are cut last, and a narrow table has kubectl's form.
func TestFit(t *testing.T) {
	long := strings.Repeat("failed to fetch ", 20)
	rows := [][]string{{"apps/podinfo", "podinfo", "6.5.0", "HelmRepository/podinfo", long}, {"漢字", strings.Repeat("é", 60), "1", "x", "ready"}}
	for _, columns := range []int{60, 80, 120} {
		for _, ascii := range []bool{false, true} {
			var b strings.Builder
			if err := (Style{Columns: columns, ASCII: ascii}).Write(&b, []string{"RELEASE", "CHART", "VERSION", "SOURCE", "STATE"}, rows, nil); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := Width(strings.TrimRight(line, "\n")); n > columns {
					t.Errorf("%d columns: %d in %q", columns, n, line)
				}
				if ascii && strings.Contains(line, "…") {
					t.Errorf("not ASCII: %q", line)
				}
			}
			if !strings.Contains(b.String(), "apps/podinfo") {
				t.Errorf("%d columns: the name is cut\n%s", columns, b.String())
			}
		}
	}
	var b strings.Builder
	if err := (Style{Columns: 80}).Write(&b, []string{"NAME", "A"}, [][]string{{"x", "y"}, {"", "z"}}, nil); err != nil {
		t.Fatal(err)
	}
	if want := "NAME   A\nx      y\n       z\n"; b.String() != want {
		t.Errorf("table %q, want %q", b.String(), want)
	}
}

// TestColors: a colour does not move cells, and only a style with colours has them.
func TestColors(t *testing.T) {
	color := func(title, cell string) Color {
		if title == "STATE" && cell == "failed" {
			return Red
		}
		return Plain
	}
	for _, colored := range []bool{false, true} {
		var b strings.Builder
		if err := (Style{Color: colored}).Write(&b, []string{"STATE", "WHY"}, [][]string{{"failed", "STATE"}}, color); err != nil {
			t.Fatal(err)
		}
		want := "STATE    WHY\nfailed   STATE\n"
		if colored {
			want = "STATE    WHY\n\x1b[31mfailed\x1b[0m   STATE\n"
		}
		if b.String() != want {
			t.Errorf("table %q, want %q", b.String(), want)
		}
	}
	diff := (Style{Color: true}).PaintDiff("@@ -1 +1 @@\n-a\n+b\n c\n")
	if want := "\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c\n"; diff != want {
		t.Errorf("diff %q, want %q", diff, want)
	}
}

func TestShort(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for revision, want := range map[string]string{
		"6.5.0": "6.5.0", "sha256:" + sum: "sha256:0123456789ab", "1.0.0@sha256:" + sum + "+x": "1.0.0@sha256:0123456789ab+x",
		"main@sha1:" + sum[:40]: "main@sha1:0123456789ab", "deadbeef-feed": "deadbeef-feed", "é": "é", "": "",
	} {
		if got := Short(revision); got != want {
			t.Errorf("%s: %q, want %q", revision, got, want)
		}
	}
}

// TestWrap: the last column continues on further lines, without losing text.
func TestWrap(t *testing.T) {
	var b strings.Builder
	reason := "release chart changed; values changed: replicaCount"
	if err := (Style{Columns: 30, Wrap: true}).Write(&b, []string{"RELEASE", "REASON"}, [][]string{{"podinfo", reason}, {"a", "none"}}, nil); err != nil {
		t.Fatal(err)
	}
	want := "RELEASE  REASON\npodinfo  release chart\n         changed; values\n         changed: replicaCount\na        none\n"
	if b.String() != want {
		t.Errorf("table\n%s", b.String())
	}
}

// TestPrintable shows one line of a text, marks further lines, and leaves out control characters.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a b": "a b", "a\nb": "a...", "a\r\nb": "a...", "a\fb": "a...", "\na": "...", "a\tb": "a b", "a\x1b[31mb": "a [31mb", "é\u202eb": "é b",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
