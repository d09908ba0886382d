// Package httpproxy is a reverse proxy, an http.Handler whose every decision the core makes: routes, canary splits, rewrites,
// redirects, answers, header changes, error pages, the choice of a peer, session cookies, and which other peer is tried.
//
//	router, err := corehost.NewRouter(ctx, corehost.Options{})
//	...
//	err = http.ListenAndServe(":8080", httpproxy.New(router, httpproxy.Options{}))
//
// README.md of the module says what it does not do.
package httpproxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"

	"njet.org/kic/corehost"
)

// Options of a [Handler]. The zero value is good for most programs.
type Options struct {
	// How peers are connected to; nil: a net.Dialer. The timeout of the upstream is in the context.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Checks certificates of peers that speak TLS, which must name the peer's address, against the system's authorities. Without it
	// they are not checked, as with NGINX by default.
	VerifyPeers bool
	// Where failed exchanges are told; nil: slog.Default().
	Logger *slog.Logger
	// Answers what the core has no answer of its own for, such as 404; nil: a line of text.
	Page func(w http.ResponseWriter, r *http.Request, status int)
}

// Handler decides each request by a router, and answers it or passes it on to a peer.
type Handler struct {
	router     *corehost.Router
	transports *transports
	proxy      *httputil.ReverseProxy
	logger     *slog.Logger
	page       func(w http.ResponseWriter, r *http.Request, status int)
}

// New makes a handler. The router stays the caller's, who loads bundles into it and closes it.
func New(router *corehost.Router, options Options) *Handler {
	h := &Handler{router: router, transports: newTransports(options), logger: options.Logger, page: options.Page}
	if h.logger == nil {
		h.logger = slog.Default()
	}
	if h.page == nil {
		h.page = func(w http.ResponseWriter, _ *http.Request, status int) {
			http.Error(w, http.StatusText(status), status)
		}
	}
	h.proxy = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      roundTripper{h},
		ModifyResponse: h.modify,
		ErrorHandler:   h.failed,
		// What peers and clients do wrong is in the answers; the proxy's own lines would hold text of theirs.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		// Written at once, as long polls and event streams need it.
		FlushInterval: -1,
	}
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{request: r}
	asked := RequestOf(r)
	err := h.router.Decide(r.Context(), &asked, &x.decision)
	if err != nil {
		if hasLeft(r) {
			return
		}
		status := http.StatusInternalServerError
		if errors.Is(err, corehost.ErrClosed) || isTimeout(err) {
			status = http.StatusServiceUnavailable
		}
		h.logger.Error("a request could not be decided", "error", err)
		h.page(w, r, status)
		return
	}
	if x.decision.Action != corehost.Proxy && !isFinal(x.decision.Status) {
		// No compiler makes such a rule; net/http would panic.
		h.logger.Error("a rule has a status that can't be sent", "status", x.decision.Status)
		h.page(w, r, http.StatusInternalServerError)
		return
	}
	x.changes = x.decision.Headers()
	switch x.decision.Action {
	case corehost.Redirect:
		addHeaders(w.Header(), x.changes, x.decision.Status)
		w.Header().Set("Location", x.decision.Text)
		w.WriteHeader(x.decision.Status)
	case corehost.Return:
		h.answer(w, x, x.decision.Status)
	default:
		h.pass(w, x)
	}
}

// isFinal says whether a status can end a request.
func isFinal(status int) bool { return status >= 200 && status <= 999 }

// answer answers by the core's own body, by an error page of the decision, or by a page of the handler.
func (h *Handler) answer(w http.ResponseWriter, x *exchange, status int) {
	if x.decision.Action == corehost.Return && x.decision.ContentType != "" {
		addHeaders(w.Header(), x.changes, status)
		w.Header().Set("Content-Type", x.decision.ContentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(x.decision.Text))
		return
	}
	if page := x.pageFor(status); page != nil {
		page.write(w, x.changes, status)
		return
	}
	addHeaders(w.Header(), x.changes, status)
	h.page(w, x.request, status)
}

// exchange is what is known of a request between its decision and its answer.
type exchange struct {
	request  *http.Request
	decision corehost.Decision
	changes  []corehost.HeaderChange
	// Whether the first attempt has been handed to the round tripper, which ends it then.
	begun bool
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// pass sends the request on.
func (h *Handler) pass(w http.ResponseWriter, x *exchange) {
	// The proxy panics to abort an answer that broke off; a place at the peer is given back all the same.
	defer func() {
		if !x.begun {
			x.decision.Attempt.Done(false)
		}
	}()
	r := x.request.WithContext(context.WithValue(x.request.Context(), exchangeKey{}, x))
	if limit := bodyLimit(x.decision.Upstream); limit > 0 {
		if r.ContentLength > limit {
			h.answer(w, x, http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	h.proxy.ServeHTTP(w, r)
}

// failed answers a request whose exchange with every peer failed.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		h.answer(w, x, http.StatusRequestEntityTooLarge)
		return
	}
	var broken *bodyError
	if errors.As(err, &broken) {
		status := http.StatusBadRequest
		if isTimeout(broken.error) {
			status = http.StatusRequestTimeout // RFC 9110, section 15.5.9.
		}
		h.answer(w, x, status)
		return
	}
	if hasLeft(r) {
		return
	}
	status := http.StatusBadGateway
	if isTimeout(err) {
		status = http.StatusGatewayTimeout
	}
	h.logger.Warn("no peer answered", "upstream", x.decision.UpstreamKey, "status", status, "error", err)
	h.answer(w, x, status)
}

// hasLeft says whether nobody waits for an answer any more. Who is in time would be told 200 if nothing were written, as where the
// program around the handler has set a deadline.
func hasLeft(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }
