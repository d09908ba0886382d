package corehost

import (
	"context"
	"os"
	"testing"
)

// bundleBytes is a bundle of testdata.
func bundleBytes(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".njkb")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readBundle(t testing.TB, name string) *Bundle {
	t.Helper()
	bundle, err := ReadBundle(bundleBytes(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// newTestTable is a table with a bundle of testdata.
func newTestTable(t testing.TB, name string) *Table {
	t.Helper()
	core, err := CompileCore(context.Background(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = core.Close(context.Background()) })
	table, err := core.NewTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Load(readBundle(t, name)); err != nil {
		t.Fatal(err)
	}
	return table
}

// newTestRouter is a router with a bundle of testdata; random numbers are 0 and the clock is set by tests.
func newTestRouter(t testing.TB, name string, options Options) *Router {
	t.Helper()
	router, err := NewRouter(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := router.Close(context.Background()); err != nil && err != ErrClosed {
			t.Error(err)
		}
	})
	if err := router.Load(context.Background(), readBundle(t, name)); err != nil {
		t.Fatal(err)
	}
	return router
}

type headerMap map[string]string

func (h headerMap) HeaderValue(name string) (string, bool) {
	value, found := h[name]
	return value, found
}

func shopRequest(target string) *Request {
	return &Request{Host: "shop.example.com", Target: target, Method: "GET", Protocol: "HTTP/1.1", ClientAddress: "192.0.2.1"}
}

func mustDecide(t testing.TB, table *Table, request *Request) Decision {
	t.Helper()
	var decision Decision
	if err := table.Decide(request, 0, 0, &decision); err != nil {
		t.Fatal(err)
	}
	return decision
}
