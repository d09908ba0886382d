// Caddy with the core: a handler of Caddy whose decisions, and the exchange with peers, are those of corehost and httpproxy.
//
// In a Caddyfile:
//
//	:8080 {
//		route {
//			njet_kic {
//				bundle /etc/site.njkb
//			}
//		}
//	}
//
// A new file is in force within a second, without a reload of Caddy.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"njet.org/kic/corehost"
	"njet.org/kic/corehost/httpproxy"
)

func init() {
	caddy.RegisterModule(Handler{})
	httpcaddyfile.RegisterHandlerDirective("njet_kic", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		handler := new(Handler)
		return handler, handler.UnmarshalCaddyfile(h.Dispenser)
	})
}

// Handler answers requests by a bundle. It is the last of its route: what the bundle does not know is answered with 404.
type Handler struct {
	// File that "njet-kic compile" wrote.
	Bundle string `json:"bundle"`

	router *corehost.Router
	proxy  *httpproxy.Handler
	stop   context.CancelFunc
	ended  chan struct{}
}

// CaddyModule says what the module is called.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.njet_kic", New: func() caddy.Module { return new(Handler) }}
}

// UnmarshalCaddyfile reads the directive. The file stands in a block: as an argument a path would be a matcher.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() != "bundle" {
			return d.Errf("%s is not known; there is bundle", d.Val())
		}
		if !d.AllArgs(&h.Bundle) {
			return d.ArgErr()
		}
	}
	if h.Bundle == "" {
		return d.Err("bundle is missing")
	}
	return nil
}

// Provision loads the bundle. One that is refused makes Caddy refuse the configuration, and go on with the one before.
func (h *Handler) Provision(ctx caddy.Context) error {
	router, err := corehost.NewRouter(ctx, corehost.Options{})
	if err != nil {
		return err
	}
	if err := router.LoadFile(ctx, h.Bundle); err != nil {
		_ = router.Close(context.Background())
		return err
	}
	h.router, h.proxy = router, httpproxy.New(router, httpproxy.Options{Logger: ctx.Slogger()})
	watching, stop := context.WithCancel(context.Background())
	h.stop, h.ended = stop, make(chan struct{})
	logger := ctx.Logger()
	go func() {
		defer close(h.ended)
		router.Watch(watching, h.Bundle, time.Second, func(err error) {
			if err != nil {
				logger.Error("the bundle is refused; the one before stays in force", zap.Error(err))
			}
		})
	}()
	return nil
}

// Cleanup ends the router once no request of this configuration is left.
func (h *Handler) Cleanup() error {
	if h.router == nil {
		return nil
	}
	h.stop()
	<-h.ended
	return h.router.Close(context.Background())
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	h.proxy.ServeHTTP(w, r)
	return nil
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
