package helmtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault describes the defect of one answer. The zero Fault lets the request through.
type Fault struct {
	Status   int               `json:"status"`   // instead of the real answer, with Body
	Header   map[string]string `json:"header"`   // added to the answer
	Body     *string           `json:"body"`     // replaces the body
	Redirect string            `json:"redirect"` // Location; Status, or 302
	Size     int64             `json:"size"`     // replaces the body by this number of zero bytes
	Truncate *int64            `json:"truncate"` // sends this number of bytes under the Content-Length of the whole body
	Lie      int64             `json:"lie"`      // is added to the Content-Length; the body does not change
	Flip     *int64            `json:"flip"`     // inverts the byte at this offset
	Endless  bool              `json:"endless"`  // the body never ends
	Stall    *int64            `json:"stall"`    // sends this number of bytes and then stops
	Hang     bool              `json:"hang"`     // no answer, the connection stays open
	Reset    bool              `json:"reset"`    // no answer, the connection is reset
	Dribble  duration          `json:"dribble"`  // sends one byte in each interval
}

// Faults are the faults of a server: the key is a path, or a method and a path; `*` matches anything, also slashes. An object
// as value applies to every request, a list to one request after the other: after its end the server behaves.
type Faults map[string]*FaultList

// FaultList is the value of a path in [Faults].
type FaultList struct {
	mu    sync.Mutex
	list  []Fault
	every bool
	next  int
}

// UnmarshalJSON decodes one fault or a list of them.
func (l *FaultList) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return d.Decode(&l.list)
	}
	l.every, l.list = true, make([]Fault, 1)
	return d.Decode(&l.list[0])
}

func (l *FaultList) take() (Fault, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.every {
		return l.list[0], true
	}
	if l.next == len(l.list) {
		return Fault{}, false
	}
	l.next++
	return l.list[l.next-1], true
}

// duration is a time.Duration that is written as in "50ms".
type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

// Handler returns next with the faults in front of it.
func (f Faults) Handler(next http.Handler) http.Handler {
	if len(f) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, ok := f.match(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		fault.serve(w, r, next)
	})
}

// match returns the fault for a request; the longest key takes precedence.
func (f Faults) match(r *http.Request) (Fault, bool) {
	keys := slices.Sorted(maps.Keys(f))
	slices.SortStableFunc(keys, func(a, b string) int { return len(b) - len(a) })
	for _, key := range keys {
		method, pattern, ok := strings.Cut(key, " ")
		if !ok {
			method, pattern = r.Method, key
		}
		if method == r.Method && matches(pattern, r.URL.EscapedPath()) {
			if fault, ok := f[key].take(); ok {
				return fault, true
			}
		}
	}
	return Fault{}, false
}

// matches reports whether a path matches a pattern, as path.Match does, but with a `*` that also matches slashes.
func matches(pattern, p string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(p, "/", "\x01"))
	return ok && err == nil
}

func (f Fault) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch {
	case f.Hang:
		<-r.Context().Done()
		return
	case f.Reset:
		reset(w)
		return
	}
	res := f.answer(r, next)
	maps.Copy(w.Header(), res.Header())
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	body := res.Body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+int(f.Lie)))
	if f.Endless || res.Code == http.StatusNoContent || res.Code == http.StatusNotModified {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(res.Code)
	if r.Method != http.MethodHead {
		f.send(w, r, body)
	}
}

// answer returns the answer that a good connection would send.
func (f Fault) answer(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	res := httptest.NewRecorder()
	switch {
	case f.Redirect != "":
		res.Header().Set("Location", f.Redirect)
		res.Code = http.StatusFound
	case f.Status == 0:
		next.ServeHTTP(res, r)
	}
	if f.Status != 0 {
		res.Code = f.Status
	}
	if f.Body != nil {
		res.Body = bytes.NewBufferString(*f.Body)
	}
	if f.Size > 0 {
		res.Body = bytes.NewBuffer(make([]byte, f.Size))
	}
	if body := res.Body.Bytes(); f.Flip != nil && int(*f.Flip) < len(body) {
		body[*f.Flip] ^= 0xff
	}
	return res
}

// send writes the body as far as the fault allows it.
func (f Fault) send(w http.ResponseWriter, r *http.Request, body []byte) {
	switch {
	case f.Truncate != nil:
		_, _ = w.Write(body[:min(*f.Truncate, int64(len(body)))])
		flush(w)
		panic(http.ErrAbortHandler)
	case f.Stall != nil:
		_, _ = w.Write(body[:min(*f.Stall, int64(len(body)))])
		flush(w)
		<-r.Context().Done()
	case f.Dribble > 0:
		dribble(w, r, body, time.Duration(f.Dribble))
	case f.Endless:
		_, _ = w.Write(body)
		for zeros := make([]byte, 32<<10); ; {
			if _, err := w.Write(zeros); err != nil || r.Context().Err() != nil {
				return
			}
		}
	default:
		_, _ = w.Write(body)
	}
}

func dribble(w http.ResponseWriter, r *http.Request, body []byte, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := range body {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if _, err := w.Write(body[i : i+1]); err != nil {
			return
		}
		flush(w)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// reset closes the connection so that the other side reads "connection reset by peer".
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
