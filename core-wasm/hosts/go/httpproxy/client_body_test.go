package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// reading starts peers that read a body before they say who they are.
func (s *site) reading(ids ...string) {
	for _, id := range ids {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, id)
		})
	}
}

// expectAllPeers fails where a peer of the upstream is taken for one that has failed: max-fails is 1.
func (s *site) expectAllPeers(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for range 6 {
		seen[s.get(t, "/careful").body] = true
	}
	if len(seen) != len(stable) {
		t.Errorf("peers that are left: %v", seen)
	}
}

func TestABodyAboveItsLimitIsRefused(t *testing.T) {
	s := newSite(t)
	for _, id := range stable {
		s.peer(id, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	}
	if got := s.post(t, "/careful", strings.Repeat("x", 64)); got.status != 200 || len(got.body) != 64 {
		t.Errorf("%+v", got)
	}
	if got := s.post(t, "/careful", strings.Repeat("x", 65)); got.status != 413 {
		t.Errorf("%+v", got)
	}
	chunked := "POST /careful HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n" +
		strings.Repeat("x", 80) + "\r\n0\r\n\r\n"
	if got := s.raw(t, chunked); got.status != 413 {
		t.Errorf("%+v", got)
	}
}

func TestABrokenBodyIsTheFaultOfTheClientAndOfNoPeer(t *testing.T) {
	s := newSite(t)
	s.reading(stable...)
	broken := "POST /careful HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno length\r\n"
	if got := s.raw(t, broken); got.status != 400 {
		t.Errorf("%+v", got)
	}
	s.expectAllPeers(t)
}

func TestAClientThatStallsInItsBodyIsToldSoAndNoPeerIsBlamed(t *testing.T) {
	s := newImpatientSite(t, time.Second)
	s.reading(stable...)
	for _, body := range []string{
		"Content-Length: 50\r\n\r\nabc",
		"Transfer-Encoding: chunked\r\n\r\n32\r\nabc",
	} {
		got := s.raw(t, "POST /careful HTTP/1.1\r\nHost: shop.example.com\r\n"+body)
		if got.status != 408 || !got.closes {
			t.Errorf("%q: %+v", body, got)
		}
	}
	s.expectAllPeers(t)
}

func TestADeadlineOfTheProgramIsNoEmptyAnswer(t *testing.T) {
	s := newSite(t)
	for _, id := range stable {
		s.peer(id, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}
	handler := s.proxy.Config.Handler
	s.proxy.Close()
	s.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), 200*time.Millisecond)
		defer stop()
		handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	if got := s.get(t, "/cart"); got.status != 504 {
		t.Errorf("%+v", got)
	}
}
