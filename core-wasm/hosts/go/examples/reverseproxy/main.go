// Reverseproxy serves a bundle over HTTP, and takes a new one when its file changes.
//
//	njet-kic compile --config-dir DIR --out site.njkb
//	go run ./examples/reverseproxy -bundle site.njkb -listen 127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"njet.org/kic/corehost"
	"njet.org/kic/corehost/httpproxy"
)

func main() {
	bundle := flag.String("bundle", "", "file that njet-kic compile wrote")
	listen := flag.String("listen", "127.0.0.1:8080", "address and port to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *bundle, *listen); err != nil {
		slog.Error("the proxy ends", "error", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, bundle, listen string) error {
	router, err := corehost.NewRouter(ctx, corehost.Options{})
	if err != nil {
		return err
	}
	defer router.Close(context.Background())
	// A bundle that is wrong at the start ends the program; one that comes later leaves the old one in force.
	if err := router.LoadFile(ctx, bundle); err != nil {
		return err
	}
	if err := router.Warm(ctx); err != nil {
		return err
	}
	go router.Watch(ctx, bundle, time.Second, func(err error) {
		if err != nil {
			slog.Error("the bundle is refused; the one before stays in force", "error", err)
			return
		}
		hosts, upstreams := router.Bundle().Counts()
		slog.Info("the bundle is in force", "hosts", hosts, "upstreams", upstreams)
	})
	server := &http.Server{
		Addr: listen, Handler: httpproxy.New(router, httpproxy.Options{}),
		ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	slog.Info("serving", "address", listen)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
