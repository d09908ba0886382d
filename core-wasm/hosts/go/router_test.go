package corehost

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var background = context.Background()

func routed(t testing.TB, router *Router, request *Request) Decision {
	t.Helper()
	var decision Decision
	if err := router.Decide(background, request, &decision); err != nil {
		t.Fatal(err)
	}
	return decision
}

// constant makes the choices of a router repeatable.
func constant() Options {
	return Options{Random: func() uint32 { return 0 }, Now: func() uint32 { return 1 }}
}

func TestARouterDecidesForManyGoroutinesWhileBundlesChange(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 3})
	bundles := []*Bundle{readBundle(t, "later"), readBundle(t, "site")}
	var wait sync.WaitGroup
	var decided atomic.Int64
	ctx, stop := context.WithCancel(background)
	for worker := range 8 {
		wait.Go(func() {
			var decision Decision
			for i := 0; ctx.Err() == nil; i++ {
				target := []string{"/cart", "/least", "/hello", "/careful"}[(i+worker)%4]
				if err := router.Decide(background, shopRequest(target), &decision); err != nil {
					t.Error(err)
					return
				}
				switch {
				case decision.Action == Proxy && decision.Attempt.Peer.Port != 8080,
					decision.Action == Return && decision.ContentType != "" && decision.Text != "hello " && decision.Text != "later ":
					t.Errorf("a decision that no bundle makes: %+v", decision)
				}
				if decision.Action == Proxy {
					decision.Attempt.Done(i%3 == 0)
				}
				decided.Add(1)
			}
		})
	}
	for i := range 60 {
		if err := router.Load(background, bundles[i%2]); err != nil {
			t.Fatal(err)
		}
		// Whoever asks from now on is answered by the new one.
		want := []string{"later ", "hello "}[i%2]
		if d := routed(t, router, shopRequest("/hello")); d.Text != want {
			t.Fatalf("change %d: %q", i, d.Text)
		}
		router.SetPeerStates(PeerChange{"VirtualServer/default/shop/least", "10.0.0.1:8080", PeerState(i % 4)})
	}
	stop()
	wait.Wait()
	if decided.Load() == 0 {
		t.Error("nothing was decided")
	}
	if router.Traps() != 0 {
		t.Errorf("%d traps", router.Traps())
	}
}

func TestABrokenBundleLeavesTheOldOneInForce(t *testing.T) {
	router := newTestRouter(t, "site", constant())
	before := router.Bundle()
	// The image of a shard whose checksum is wrong, in a bundle whose checksum is right.
	data := resealed(bundleBytes(t, "later"), func(data []byte) {
		at := bytes.Index(data, []byte("NJSH"))
		data[at+200] ^= 1
	})
	bundle, err := ReadBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Load(background, bundle); codeOf(err) != CodeChecksum {
		t.Errorf("%v, not refused by its checksum", err)
	}
	if router.Bundle() != before {
		t.Error("another bundle is in force")
	}
	if d := routed(t, router, shopRequest("/hello")); d.Text != "hello " {
		t.Errorf("%q", d.Text)
	}
}

func TestABundleFileIsTakenWhenItChangesAndABrokenOneIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.njkb")
	put := func(data []byte) {
		if err := os.WriteFile(path+".part", data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".part", path); err != nil {
			t.Fatal(err)
		}
	}
	router := newTestRouter(t, "site", constant())
	ctx, stop := context.WithCancel(background)
	reports := make(chan error)
	ended := make(chan struct{})
	put(bundleBytes(t, "site"))
	go func() {
		defer close(ended)
		router.Watch(ctx, path, time.Millisecond, func(err error) { reports <- err })
	}()
	if err := <-reports; err != nil {
		t.Fatal(err)
	}
	put(bundleBytes(t, "later"))
	if err := <-reports; err != nil {
		t.Fatal(err)
	}
	put([]byte("no bundle, but long enough to have a header"))
	if err := <-reports; codeOf(err) != CodeMagic {
		t.Errorf("%v", err)
	}
	if d := routed(t, router, shopRequest("/hello")); d.Text != "later " {
		t.Errorf("%q", d.Text)
	}
	stop()
	<-ended
}

func TestCursorsAndCountsOutliveAChangeElsewhere(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 1, Random: func() uint32 { return 0 }})
	held := routed(t, router, shopRequest("/few"))
	if d := routed(t, router, shopRequest("/few")); !d.Busy || d.Status != 502 {
		t.Fatalf("the only place is given twice: %+v", d)
	}
	bundle := readBundle(t, "site")
	if err := router.Load(background, bundle); err != nil {
		t.Fatal(err)
	}
	busy := routed(t, router, shopRequest("/few"))
	if !busy.Busy {
		t.Error("the change gave the place away")
	}
	if _, err := router.Retry(background, &busy, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("%v, not ErrBusy", err)
	}
	held.Attempt.Done(false)
	if attempt, err := router.Retry(background, &busy, nil); err != nil {
		t.Error(err)
	} else {
		attempt.Done(false)
	}
}

func TestAPeerThatFailedIsLeftOutAsItsUpstreamSays(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 1, Random: func() uint32 { return 0 }, Now: func() uint32 { return 5 }})
	first := routed(t, router, shopRequest("/careful"))
	out := first.Attempt.Peer.ID
	first.Attempt.Done(true)
	for range 10 {
		d := routed(t, router, shopRequest("/careful"))
		if d.Attempt.Peer.ID == out {
			t.Fatalf("%s is picked although it failed", out)
		}
		d.Attempt.Done(false)
	}
	peers, err := router.Peers(background, first.UpstreamKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range peers {
		if peer.Out != (peer.ID == out) {
			t.Errorf("%s: out is %t", peer.ID, peer.Out)
		}
	}
}

func TestAPeerThatIsDownIsNotPickedByAnyInstance(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 4})
	key := "VirtualServer/default/shop/stable"
	router.SetPeerStates(
		PeerChange{key, "10.0.0.1:8080", Down},
		PeerChange{key, "10.0.0.2:8080", Down},
		PeerChange{key, "10.9.9.9:1", Down},
		PeerChange{"unknown", "10.0.0.1:8080", Down},
	)
	pick := func(want func(id string) bool) {
		t.Helper()
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 50 {
					if d := routed(t, router, shopRequest("/cart")); !want(d.Attempt.Peer.ID) {
						t.Errorf("%s is picked", d.Attempt.Peer.ID)
						return
					}
				}
			})
		}
		wait.Wait()
	}
	pick(func(id string) bool { return id == "10.0.0.3:8080" })
	// States outlive a bundle, as far as their peers do.
	for _, name := range []string{"later", "site"} {
		if err := router.Load(background, readBundle(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	router.SetPeerStates(PeerChange{key, "10.0.0.3:8080", Down}, PeerChange{key, "10.0.0.1:8080", Up})
	pick(func(id string) bool { return id != "10.0.0.3:8080" })
	router.SetPeerStates(PeerChange{key, "10.0.0.3:8080", Unchecked})
	seen := sync.Map{}
	pick(func(id string) bool { seen.Store(id, true); return true })
	if _, picked := seen.Load("10.0.0.3:8080"); !picked {
		t.Error("a peer that is no longer down is not picked")
	}
}

func TestWaitingForAnInstanceEndsWithTheContext(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 1})
	m, err := router.take(background)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	answered := make(chan error)
	go func() { answered <- router.Decide(ctx, shopRequest("/"), &Decision{}) }()
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	router.give(m, nil)
	if err := router.Decide(ctx, shopRequest("/"), &Decision{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone is answered: %v", err)
	}
	routed(t, router, shopRequest("/cart"))
}

func TestNoMoreInstancesAreMadeThanAllowed(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 2})
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 100 {
				routed(t, router, shopRequest("/cart"))
			}
		})
	}
	wait.Wait()
	if made := router.pool.made; made > 2 {
		t.Errorf("%d instances", made)
	}
}

func TestAWarmRouterHasAllItsInstances(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 3})
	if err := router.Warm(background); err != nil {
		t.Fatal(err)
	}
	if free := len(router.pool.free); free != 3 || router.pool.made != 3 {
		t.Errorf("%d free of %d", free, router.pool.made)
	}
	for _, m := range router.pool.free {
		if !m.fresh(router.current.Load()) {
			t.Error("an instance does not hold the bundle")
		}
	}
}

func TestARouterCanBeWarmedByManyAtOnce(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 4})
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if err := router.Warm(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if free := len(router.pool.free); free != 4 {
		t.Errorf("%d free", free)
	}
}

func TestMemoryStaysFlatOverChangesOfTheBundleOfARouter(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 2})
	bundles := []*Bundle{readBundle(t, "later"), readBundle(t, "site")}
	change := func(times int) uint64 {
		for i := range times {
			if err := router.Load(background, bundles[i%2]); err != nil {
				t.Fatal(err)
			}
			routed(t, router, shopRequest("/cart"))
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	before := change(20)
	// An instance alone has more than a megabyte.
	if after := change(100); after > before+1<<20 {
		t.Errorf("%d bytes, %d before", after, before)
	}
}

func TestATrapCostsOneRequestAndTheInstanceIsReplaced(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 1})
	held := routed(t, router, shopRequest("/few"))
	m, err := router.take(background)
	if err != nil {
		t.Fatal(err)
	}
	// What a host writes over the core's own memory is not survived.
	for i := range m.table.in.bytes {
		if at := uint32(i); at < m.table.context || at >= m.table.context+1024 {
			m.table.in.bytes[i] = 0xff
		}
	}
	router.give(m, nil)
	var trap *TrapError
	if err := router.Decide(background, shopRequest("/cart"), &Decision{}); !errors.As(err, &trap) {
		t.Fatalf("%v, not a trap", err)
	}
	if router.Traps() != 1 {
		t.Errorf("%d traps", router.Traps())
	}
	if d := routed(t, router, shopRequest("/cart")); d.Action != Proxy {
		t.Errorf("the new instance does not hold the bundle: %+v", d)
	}
	// The end of a try that the old one gave means nothing to the new one.
	held.Attempt.Done(true)
	routed(t, router, shopRequest("/few"))
}

func TestAClosedRouterAnswersThatItIs(t *testing.T) {
	router := newTestRouter(t, "site", Options{Instances: 1})
	m, err := router.take(background)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() { waiting <- router.Decide(background, shopRequest("/"), &Decision{}) }()
	closed := make(chan error)
	go func() { closed <- router.Close(background) }()
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	router.give(m, nil)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		router.Decide(background, shopRequest("/"), &Decision{}),
		router.Load(background, readBundle(t, "site")),
		router.Close(background),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

func TestARouterWithoutABundleAnswersWith404(t *testing.T) {
	router, err := NewRouter(background, constant())
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close(background)
	if d := routed(t, router, shopRequest("/")); d.Action != Return || d.Status != 404 {
		t.Errorf("%v %d", d.Action, d.Status)
	}
}

func TestAModuleThatIsNoCoreIsRefused(t *testing.T) {
	empty := []byte("\x00asm\x01\x00\x00\x00")
	if _, err := NewRouter(background, Options{Wasm: empty}); codeOf(err) != CodeABIVersion {
		t.Errorf("%v", err)
	}
	if _, err := NewRouter(background, Options{Wasm: []byte("no module")}); err == nil {
		t.Error("taken")
	}
}
