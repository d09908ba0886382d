package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"
	"njet.org/kic/corehost"
	"njet.org/kic/corehost/httpproxy"
)

// nowhere is a response that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header            { return n.header }
func (n nowhere) Write(data []byte) (int, error) { return len(data), nil }
func (n nowhere) WriteHeader(int)                {}

// timed is how many milliseconds making something takes.
func timed(make func() error) (float64, error) {
	start := time.Now()
	err := make()
	return float64(time.Since(start).Microseconds()) / 1000, err
}

func contestantsOf(w workload) ([]contestant, func(), error) {
	requests := make([]*http.Request, len(w.Requests))
	for i, one := range w.Requests {
		// As a server has it: parsed, with the text of the target beside.
		requests[i] = httptest.NewRequest(http.MethodGet, one.Target, nil)
		requests[i].Host = one.Host
	}
	router, err := corehost.NewRouter(context.Background(), corehost.Options{})
	if err != nil {
		return nil, nil, err
	}
	core := newCoreContestant(router, w, requests)
	if core.loaded, err = timed(func() error { return router.LoadFile(context.Background(), w.Bundle) }); err != nil {
		return nil, nil, err
	}
	end := func() { _ = router.Close(context.Background()) }
	return []contestant{core, serveMux(w, requests), chiRouter(w, requests)}, end, nil
}

// newCoreContestant decides by a router, from requests of net/http, with every text copied in and out.
func newCoreContestant(router *corehost.Router, w workload, requests []*http.Request) contestant {
	numbers := make(map[route]int, len(w.Routes))
	for i, one := range w.Routes {
		numbers[one] = i
	}
	// The rules that were met; what routes they stand for is looked up outside of the time that is measured.
	origins := make([]*corehost.Origin, len(requests))
	return contestant{
		name: "core",
		pass: func([]int) {
			var decision corehost.Decision
			for i, request := range requests {
				if err := router.Decide(context.Background(), httpproxy.RequestOf(request), &decision); err != nil {
					panic(err)
				}
				origins[i] = nil
				if decision.Action == corehost.Proxy {
					origins[i] = decision.Origin
					decision.Attempt.Done(false)
				}
			}
		},
		settle: func(found []int) {
			for i, origin := range origins {
				found[i] = -1
				if origin != nil {
					found[i] = numbers[route{origin.Host, origin.Path}]
				}
			}
		},
	}
}

// routed is a handler for each route, which notes its number.
func routed(w workload, into *int, add func(one route, handler http.HandlerFunc)) {
	for i, one := range w.Routes {
		add(one, func(http.ResponseWriter, *http.Request) { *into = i })
	}
}

func served(handler http.Handler, requests []*http.Request, met *int) func(found []int) {
	return func(found []int) {
		response := nowhere{http.Header{}}
		for i, request := range requests {
			*met = -1
			handler.ServeHTTP(response, request)
			found[i] = *met
		}
	}
}

// serveMux is net/http's own router, which knows hosts.
func serveMux(w workload, requests []*http.Request) contestant {
	mux := http.NewServeMux()
	met := new(int)
	loaded, _ := timed(func() error {
		routed(w, met, func(one route, handler http.HandlerFunc) {
			mux.HandleFunc(one.Host+one.Path, handler)
			mux.HandleFunc(one.Host+one.Path+"/", handler)
		})
		return nil
	})
	return contestant{name: "net/http ServeMux", loaded: loaded, pass: served(mux, requests, met)}
}

// hosts is what a Go program puts before routers that know no hosts.
type hosts map[string]*chi.Mux

func (h hosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mux, found := h[r.Host]; found {
		mux.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// chiRouter is chi, one router for each host behind a map.
func chiRouter(w workload, requests []*http.Request) contestant {
	byHost := hosts{}
	met := new(int)
	loaded, _ := timed(func() error {
		routed(w, met, func(one route, handler http.HandlerFunc) {
			mux := byHost[one.Host]
			if mux == nil {
				mux = chi.NewRouter()
				byHost[one.Host] = mux
			}
			mux.HandleFunc(one.Path, handler)
			mux.HandleFunc(one.Path+"/*", handler)
		})
		return nil
	})
	return contestant{name: "chi", loaded: loaded, pass: served(byHost, requests, met)}
}
