package helmtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
)

// Proxy returns an HTTP proxy that reaches the hosts of the network: CONNECT for https, absolute URIs for http. With a user,
// USER:PASSWORD, it requires these credentials.
func Proxy(n *Network, user string) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = r.In.URL
			r.Out.Host = r.In.URL.Host
			r.Out.Header.Del("Proxy-Authorization")
		},
		Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case user != "" && !authorized(r.Header.Get("Proxy-Authorization"), user):
			w.Header().Set("Proxy-Authenticate", `Basic realm="proxy"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
		case r.Method == http.MethodConnect:
			tunnel(n, w, r)
		case r.URL.IsAbs():
			forward.ServeHTTP(w, r)
		default:
			http.Error(w, "this is a proxy", http.StatusBadRequest)
		}
	})
}

func tunnel(n *Network, w http.ResponseWriter, r *http.Request) {
	upstream, err := n.Dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer upstream.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if rec, ok := w.(*recorder); ok {
		rec.note(http.StatusOK)
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var wg sync.WaitGroup
	pipe := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	wg.Go(func() { pipe(upstream, buffered) })
	wg.Go(func() { pipe(client, upstream) })
	wg.Wait()
}
