package program

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The terminal of the picture.
const (
	pictureColumns = 100
	cellWidth      = 8.4
	cellHeight     = 19
	margin         = 20
	titleHeight    = 34
)

// The recording: durations in seconds. They are not measured, so that the same run gives the same picture.
const (
	keyTime    = 0.04 // of a character that is typed
	thinkTime  = 0.8  // before a command
	answerTime = 0.4  // of a command
	lineTime   = 0.03 // of a line of its answer
	readTime   = 2.0  // after an answer
)

// pictureStyle animates the picture. Without an animation, everything is visible.
const pictureStyle = `<style>
.r{animation:show .01s backwards}
.c{transform:translateX(1000px);animation:type 1s backwards}
@keyframes show{from{opacity:0}}
@keyframes type{from{transform:none}to{transform:translateX(var(--w))}}
@media (prefers-reduced-motion:reduce){.r,.c{animation:none}}
</style>
`

// pictureColours are the colours of the SGR codes that the program writes. A missing code is a mistake in the picture.
var pictureColours = map[string]string{
	"0": "#d8dee9", "1": "bold", "2": "#7b8494", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#76e3ea",
}

const pictureFiles = `
<!-- world
-- _repo/addr --
charts.example.test:80
-- _repo/charts --
podinfo 6.5.0
podinfo 6.9.2
-- clusters/sources.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: podinfo
spec:
  interval: 5m0s
  url: http://charts.example.test
-- clusters/charts.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: frontend
spec:
  interval: 5m0s
  chart: podinfo
  version: 6.x
  sourceRef:
    kind: HelmRepository
    name: podinfo
-- broken/backend.yaml --
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  name: backend
spec:
  interval: 5m0s
  chart: podinfo
  vresion: 6.x
  sourceRef:
    kind: HelmRepository
    name: podinfo
-->
`

// TestPicture records docs/images/fetch.svg, an animated picture, from a real run: commands are typed, and their output
// appears. With -update it writes the file.
func TestPicture(t *testing.T) {
	t.Parallel()
	g := newGuide(t, pictureFiles)
	g.env = append(g.env, "HELMSRC_COLOR=always")
	var recorded []shown
	at := 0.0
	for _, command := range []string{
		"helmsrc validate -f broken --lookup-dir clusters",
		"helmsrc resolve -f clusters -o table",
		"helmsrc fetch -f clusters -o name",
	} {
		at += thinkTime
		recorded = append(recorded, shown{"\x1b[32m$\x1b[0m \x1b[1m" + command + "\x1b[0m", at, utf8.RuneCountInString(command)})
		at += float64(utf8.RuneCountInString(command))*keyTime + answerTime
		for line := range strings.SplitSeq(strings.TrimRight(g.answer(command), "\n"), "\n") {
			recorded = append(recorded, shown{line: line, at: at})
			at += lineTime
		}
		recorded = append(recorded, shown{at: at})
		at += readTime
	}
	got := drawScreen(t, recorded[:len(recorded)-1])
	file := filepath.Join("docs", "images", "fetch.svg")
	if *update {
		if err := writeFile(file, got); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s is not what the program prints (%v): go test -run TestPicture -update .", file, err)
	}
}

var escape = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// shown is a line of the terminal, with the time of its appearance in seconds, and the number of typed characters at its end.
type shown struct {
	line  string
	at    float64
	typed int
}

// drawScreen makes a picture of the lines of a terminal.
func drawScreen(t *testing.T, lines []shown) []byte {
	t.Helper()
	var body bytes.Buffer
	row := 0
	for _, line := range lines {
		if line.line != "" {
			fmt.Fprintf(&body, `<g class="r" style="animation-delay:%.2fs">`+"\n", line.at)
		}
		now, rest := wrap(readSpans(t, line.line))
		for ; len(rest) > 0; row++ {
			drawRow(&body, now, row)
			now, rest = wrap(rest)
		}
		drawRow(&body, now, row)
		if line.typed > 0 {
			drawTyping(&body, line, row)
		}
		if line.line != "" {
			body.WriteString("</g>\n")
		}
		row++
	}
	width, height := 2*margin+pictureColumns*cellWidth, titleHeight+margin+float64(row*cellHeight)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img" aria-label="helmsrc in a terminal">
<rect width="100%%" height="100%%" rx="8" fill="#161b22"/>
<g><circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/></g>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace" font-size="14" xml:space="preserve" style="white-space:pre">
`, width, height, width)
	b.WriteString(pictureStyle)
	b.Write(body.Bytes())
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// drawTyping covers the typed text, and uncovers it character by character.
func drawTyping(b *bytes.Buffer, line shown, row int) {
	const prompt = 2
	width := float64(line.typed) * cellWidth
	fmt.Fprintf(b, `<rect class="c" style="--w:%.1fpx;animation-duration:%.2fs;animation-delay:%.2fs;animation-timing-function:steps(%d)" x="%.1f" y="%d" width="%.1f" height="%d" fill="#161b22"/>`+"\n",
		width, float64(line.typed)*keyTime, line.at, line.typed, margin+prompt*cellWidth, titleHeight+margin+(row-1)*cellHeight, width, cellHeight)
}

// span is text with the same colour and weight.
type span struct {
	text, colour string
	bold         bool
}

func readSpans(t *testing.T, line string) (spans []span) {
	t.Helper()
	look := span{colour: pictureColours["0"]}
	rest := line
	add := func(text string) {
		if text != "" {
			spans = append(spans, span{text, look.colour, look.bold})
		}
	}
	for {
		at := escape.FindStringSubmatchIndex(rest)
		if at == nil {
			add(rest)
			return spans
		}
		add(rest[:at[0]])
		for code := range strings.SplitSeq(rest[at[2]:at[3]], ";") {
			colour, ok := pictureColours[code]
			switch {
			case !ok:
				t.Errorf("the picture has no colour for %q", code)
			case code == "0":
				look = span{colour: colour}
			case colour == "bold":
				look.bold = true
			default:
				look.colour = colour
			}
		}
		rest = rest[at[1]:]
	}
}

// wrap divides spans into a row of full width, and the rest.
func wrap(spans []span) (row, rest []span) {
	left := pictureColumns
	for i, s := range spans {
		runes := []rune(s.text)
		if len(runes) <= left {
			row = append(row, s)
			left -= len(runes)
			continue
		}
		if left > 0 {
			row = append(row, span{string(runes[:left]), s.colour, s.bold})
		}
		return row, append([]span{{string(runes[left:]), s.colour, s.bold}}, spans[i+1:]...)
	}
	return row, nil
}

// drawRow gives each span its width in a terminal, regardless of the font.
func drawRow(b *bytes.Buffer, spans []span, row int) {
	column := 0
	for _, s := range spans {
		n := utf8.RuneCountInString(s.text)
		if strings.TrimSpace(s.text) != "" {
			weight := ""
			if s.bold {
				weight = ` font-weight="bold"`
			}
			fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>`,
				margin+float64(column)*cellWidth, titleHeight+margin+row*cellHeight-4, float64(n)*cellWidth, s.colour, weight)
			_ = xml.EscapeText(b, []byte(s.text))
			b.WriteString("</text>\n")
		}
		column += n
	}
}
