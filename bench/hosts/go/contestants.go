package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
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
	contestants := []contestant{core, serveMuxByHost(w, requests), chiByHost(w, requests)}
	// It compares each pattern with all that end in a slash: 100,000 routes take it minutes.
	if len(w.Routes) <= 10_000 || os.Getenv("NJET_KIC_BENCH_SLOW") != "" {
		contestants = append(contestants, serveMux(w, requests))
	}
	return contestants, end, nil
}

// newCoreContestant decides by a router, from requests of net/http, with every text copied in and out.
func newCoreContestant(router *corehost.Router, w workload, requests []*http.Request) contestant {
	numbers := make(map[route]int, len(w.Routes))
	for i, one := range w.Routes {
		numbers[one] = i
	}
	// The rules that were met; what routes they stand for is looked up outside of the time that is measured.
	met := make([]corehost.Decision, len(requests))
	return contestant{
		name: "core",
		pass: func([]int) {
			for i, request := range requests {
				asked := httpproxy.RequestOf(request)
				if err := router.Decide(context.Background(), &asked, &met[i]); err != nil {
					panic(err)
				}
				if met[i].Action == corehost.Proxy {
					met[i].Attempt.Done(false)
				}
			}
		},
		settle: func(found []int) {
			for i := range met {
				found[i] = -1
				if met[i].Action == corehost.Proxy {
					origin, _ := met[i].Origin()
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
type hosts[M http.Handler] map[string]M

func (h hosts[M]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mux, found := h[r.Host]; found {
		mux.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// byHost is a router for each host behind a map.
func byHost[M http.Handler](name string, w workload, requests []*http.Request, make func() M, add func(M, string, http.HandlerFunc)) contestant {
	muxes := hosts[M]{}
	met := new(int)
	loaded, _ := timed(func() error {
		routed(w, met, func(one route, handler http.HandlerFunc) {
			mux, found := muxes[one.Host]
			if !found {
				mux = make()
				muxes[one.Host] = mux
			}
			add(mux, one.Path, handler)
		})
		return nil
	})
	return contestant{name: name, loaded: loaded, pass: served(muxes, requests, met)}
}

func chiByHost(w workload, requests []*http.Request) contestant {
	add := func(mux *chi.Mux, path string, handler http.HandlerFunc) {
		mux.HandleFunc(path, handler)
		mux.HandleFunc(path+"/*", handler)
	}
	return byHost("chi, one for each host", w, requests, chi.NewRouter, add)
}

func serveMuxByHost(w workload, requests []*http.Request) contestant {
	add := func(mux *http.ServeMux, path string, handler http.HandlerFunc) {
		mux.HandleFunc(path, handler)
		mux.HandleFunc(path+"/", handler)
	}
	return byHost("ServeMux, one for each host", w, requests, http.NewServeMux, add)
}
