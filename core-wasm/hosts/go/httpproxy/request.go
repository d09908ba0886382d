package httpproxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"njet.org/kic/corehost"
)

// RequestOf is a request of net/http as the core takes it, for handlers of one's own.
func RequestOf(r *http.Request) corehost.Request {
	return corehost.Request{
		Host: r.Host, Target: r.RequestURI, TLS: r.TLS != nil, Method: r.Method, Protocol: r.Proto, Headers: (*headers)(r),
	}
}

// headers gives the headers of a request, of which net/http keeps Host for itself.
type headers http.Request

// Client implements corehost.ClientSource.
func (h *headers) Client() (address string, port uint16) {
	host, text, err := net.SplitHostPort(h.RemoteAddr)
	if err != nil {
		return "", 0
	}
	number, _ := strconv.ParseUint(text, 10, 16)
	// A zone is not part of the address.
	address, _, _ = strings.Cut(host, "%")
	return address, uint16(number)
}

// HeaderValue implements corehost.HeaderSource.
func (h *headers) HeaderValue(name string) (string, bool) {
	if name == "host" {
		return h.Host, h.Host != ""
	}
	values := h.Header[http.CanonicalHeaderKey(name)]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	if name == "cookie" {
		return strings.Join(values, "; "), true
	}
	return strings.Join(values, ", "), true
}

// rewrite makes the request to the upstream. Which peer gets it is known when it is sent.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	scheme := "http"
	if upstream := x.decision.Upstream; upstream != nil && upstream.Transport.TLS {
		scheme = "https"
	}
	pr.Out.URL = targetURL(scheme, x.decision.Attempt.Peer.ID, x.decision.Text)
	pr.Out.Host = pr.In.Host
	for _, change := range x.changes {
		if change.Op == corehost.DropRequest {
			dropHeaders(pr.Out.Header)
		}
	}
	pr.SetXForwarded()
	if address, _, err := net.SplitHostPort(pr.In.RemoteAddr); err == nil {
		pr.Out.Header.Set("X-Real-IP", address)
	}
	for _, change := range x.changes {
		if change.Op != corehost.SetRequest {
			continue
		}
		switch {
		case strings.EqualFold(change.Name, "host"):
			pr.Out.Host = change.Value
		case change.Value == "":
			pr.Out.Header.Del(change.Name)
		default:
			pr.Out.Header[http.CanonicalHeaderKey(change.Name)] = []string{change.Value}
		}
	}
}

// What a body needs stays where the client's headers are not passed on; so does what an upgrade needs.
var keptHeaders = []string{"Content-Length", "Content-Type", "Connection", "Upgrade"}

func dropHeaders(header http.Header) {
	for name := range header {
		kept := false
		for _, other := range keptHeaders {
			kept = kept || name == other
		}
		if !kept {
			delete(header, name)
		}
	}
}

// targetURL is a URL that is sent as exactly this target. net/http would escape a path anew.
func targetURL(scheme, host, target string) *url.URL {
	path, query, hasQuery := strings.Cut(target, "?")
	made := &url.URL{Scheme: scheme, Host: host, RawQuery: query, ForceQuery: hasQuery && query == ""}
	if strings.HasPrefix(path, "//") {
		// An opaque part that begins so would be sent with the scheme.
		made.Path, made.RawPath = path, path
		if plain, err := url.PathUnescape(path); err == nil {
			made.Path = plain
		}
		return made
	}
	made.Opaque = path
	return made
}
