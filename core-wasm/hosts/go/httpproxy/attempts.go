package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"njet.org/kic/corehost"
)

// roundTripper tries peers until one answers.
type roundTripper struct{ handler *Handler }

// RoundTrip sends the request to the peer of its decision, and to others as the upstream allows. Each attempt is ended once: a
// failed one at once, the last one when its answer has been read.
func (t roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	x := exchangeOf(request.Context())
	x.begun = true
	policy := retryPolicyOf(x.decision.Upstream)
	transport := t.handler.transports.of(x.decision.Upstream)
	body := newOnceBody(request.Body)
	tried := []*corehost.Peer{}
	for {
		attempt := &x.decision.Attempt
		response, err := transport.RoundTrip(toPeer(request, attempt.Peer, body))
		tried = append(tried, attempt.Peer)
		if fault := body.brokenBy(request.Context()); err != nil && fault != nil {
			attempt.Done(false)
			return nil, fault
		}
		failed := policy.failed(response, err) && request.Context().Err() == nil
		again := failed && policy.again(request, err, len(tried)) && body.untouched()
		var next corehost.Attempt
		if again {
			var none error
			next, none = t.handler.router.Retry(request.Context(), &x.decision, tried)
			again = none == nil
		}
		if !again {
			if err != nil {
				attempt.Done(failed)
				return nil, err
			}
			response.Request = request
			response.Body = endsWith(response.Body, attempt, failed)
			return response, nil
		}
		attempt.Done(true)
		if response != nil {
			_ = response.Body.Close()
		}
		next.NewSession = next.Peer.Session != ""
		x.decision.Attempt = next
		body = body.again()
	}
}

// toPeer is the request for one peer.
func toPeer(request *http.Request, peer *corehost.Peer, body *onceBody) *http.Request {
	out := request.WithContext(request.Context())
	url := *request.URL
	url.Host = peer.ID
	out.URL = &url
	if request.Body != nil && request.Body != http.NoBody {
		out.Body = body
	}
	return out
}

// retryPolicy is when another peer is tried, as NGINX's proxy_next_upstream says it.
type retryPolicy struct {
	conditions []string
	tries      int64
	deadline   time.Time
}

var defaultConditions = []string{"error", "timeout"}

func retryPolicyOf(upstream *corehost.Upstream) retryPolicy {
	policy := retryPolicy{conditions: defaultConditions}
	if upstream == nil {
		return policy
	}
	transport := &upstream.Transport
	if transport.NextUpstream != nil {
		policy.conditions = transport.NextUpstream
	}
	if transport.NextUpstreamTries != nil {
		policy.tries = *transport.NextUpstreamTries
	}
	if limit := transport.NextUpstreamTimeout; limit != nil && *limit > 0 {
		policy.deadline = time.Now().Add(time.Duration(*limit) * time.Millisecond)
	}
	return policy
}

func (p retryPolicy) has(condition string) bool { return slices.Contains(p.conditions, condition) }

// failed says whether the peer has failed.
func (p retryPolicy) failed(response *http.Response, err error) bool {
	if err != nil {
		return !errors.Is(err, context.Canceled)
	}
	return response.StatusCode >= 500 && p.has("http_"+strconv.Itoa(response.StatusCode))
}

// again says whether an attempt that failed may be repeated with another peer, as far as its body allows it.
func (p retryPolicy) again(request *http.Request, err error, tries int) bool {
	if p.tries > 0 && int64(tries) >= p.tries || !p.deadline.IsZero() && time.Now().After(p.deadline) {
		return false
	}
	if err != nil {
		condition := "error"
		if isTimeout(err) {
			condition = "timeout"
		}
		if !p.has(condition) {
			return false
		}
		var dialing *net.OpError
		if errors.As(err, &dialing) && dialing.Op == "dial" {
			return true // Nobody has seen the request.
		}
	}
	switch request.Method {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return p.has("non_idempotent")
	}
	return true
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// onceBody is the body of a request for one attempt. A transport may still read it after it has given up; then there is nothing left
// to be repeated.
type onceBody struct {
	source io.ReadCloser
	mutex  sync.Mutex
	read   bool
	ended  bool
	// Whether all of it has been read.
	whole  bool
	broken error
}

// bodyError is what a client did wrong with its body, which is no fault of the peer.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

func newOnceBody(source io.ReadCloser) *onceBody { return &onceBody{source: source} }

func (b *onceBody) Read(into []byte) (int, error) {
	b.mutex.Lock()
	ended := b.ended
	b.read = true
	b.mutex.Unlock()
	if ended {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.source.Read(into)
	if err != nil {
		b.mutex.Lock()
		if err == io.EOF {
			b.whole = true
		} else {
			b.broken = &bodyError{err}
		}
		b.mutex.Unlock()
	}
	return n, err
}

// brokenBy is why the body could not be read from the client; nil where it could. A transport that meets that ends with an error, and
// not always with this one: the server ends the context of a request whose body it can't read, and may do so before the read returns.
func (b *onceBody) brokenBy(ctx context.Context) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.broken == nil && ctx.Err() != nil && !b.whole && !b.empty() {
		return &bodyError{os.ErrDeadlineExceeded}
	}
	return b.broken
}

func (b *onceBody) empty() bool { return b.source == nil || b.source == http.NoBody }

// Close is left to the server, which closes the bodies of its requests.
func (b *onceBody) Close() error { return nil }

// untouched ends the body, and says whether it can be given to another attempt.
func (b *onceBody) untouched() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.empty() {
		return true
	}
	if !b.read {
		b.ended = true
	}
	return !b.read
}

func (b *onceBody) again() *onceBody { return newOnceBody(b.source) }

// endsWith ends an attempt when its answer has been read, or is given up.
func endsWith(body io.ReadCloser, attempt *corehost.Attempt, failed bool) io.ReadCloser {
	ends := &endingBody{ReadCloser: body, done: sync.OnceFunc(func() { attempt.Done(failed) })}
	// The connection of an upgrade is written to, too.
	if writer, ok := body.(io.Writer); ok {
		return struct {
			*endingBody
			io.Writer
		}{ends, writer}
	}
	return ends
}

type endingBody struct {
	io.ReadCloser
	done func()
}

func (b *endingBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
