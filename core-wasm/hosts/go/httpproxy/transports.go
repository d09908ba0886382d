package httpproxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"njet.org/kic/corehost"
)

// Defaults of what an upstream leaves open: NGINX's.
const (
	defaultTimeout   = time.Minute
	defaultBodyLimit = 1 << 20
	// Idle connections to each peer.
	defaultIdle = 32
)

// bodyLimit is the most bytes of a request's body; 0: no limit.
func bodyLimit(upstream *corehost.Upstream) int64 {
	if upstream == nil || upstream.Transport.ClientMaxBodySize == nil {
		return defaultBodyLimit
	}
	return *upstream.Transport.ClientMaxBodySize
}

// connectionKind is what connections have in common. Upstreams of one kind share connections.
type connectionKind struct {
	tls, grpc     bool
	connect, read time.Duration
	idle          int
}

func kindOf(upstream *corehost.Upstream) connectionKind {
	kind := connectionKind{connect: defaultTimeout, read: defaultTimeout, idle: defaultIdle}
	if upstream == nil {
		return kind
	}
	transport := &upstream.Transport
	kind.tls, kind.grpc = transport.TLS, transport.Protocol == "grpc"
	if transport.ConnectTimeout != nil {
		kind.connect = time.Duration(*transport.ConnectTimeout) * time.Millisecond
	}
	if transport.ReadTimeout != nil {
		kind.read = time.Duration(*transport.ReadTimeout) * time.Millisecond
	}
	if transport.Keepalive != nil {
		kind.idle = int(*transport.Keepalive)
	}
	return kind
}

// mostKinds bounds what is kept. Timeouts are chosen by objects, which change over the years of a process.
const mostKinds = 256

// transports has a transport for each kind of connections.
type transports struct {
	options Options
	mutex   sync.Mutex
	known   map[connectionKind]*http.Transport
}

func newTransports(options Options) *transports {
	return &transports{options: options, known: map[connectionKind]*http.Transport{}}
}

func (t *transports) of(upstream *corehost.Upstream) *http.Transport {
	kind := kindOf(upstream)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if known := t.known[kind]; known != nil {
		return known
	}
	if len(t.known) >= mostKinds {
		for old, transport := range t.known {
			delete(t.known, old)
			transport.CloseIdleConnections()
			break
		}
	}
	made := t.make(kind)
	t.known[kind] = made
	return made
}

func (t *transports) make(kind connectionKind) *http.Transport {
	dial := t.options.DialContext
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, kind.connect)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, &net.OpError{Op: "dial", Net: network, Err: err}
			}
			return conn, nil
		},
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: !t.options.VerifyPeers}, //nolint:gosec // Options.VerifyPeers says why.
		TLSHandshakeTimeout:   kind.connect,
		ResponseHeaderTimeout: kind.read,
		MaxIdleConnsPerHost:   max(kind.idle, 1),
		DisableKeepAlives:     kind.idle == 0,
		IdleConnTimeout:       time.Minute,
		// The client's wish is passed on; an answer is passed as it is.
		DisableCompression: true,
	}
	if kind.grpc {
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
		transport.Protocols = protocols
		transport.ForceAttemptHTTP2 = true
	}
	return transport
}
