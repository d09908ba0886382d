package corehost

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a [Router]. The zero value is good for most programs.
type Options struct {
	// core.wasm; nil: the one that comes with this module.
	Wasm []byte
	// Most instances of the core, which is most decisions at one moment. 0: as many as GOMAXPROCS, since a decision only computes.
	// Each has a copy of the rules.
	Instances int
	// Most bytes of memory of each instance; 0: 4 GiB.
	MaxMemory uint64
	// Random numbers; nil: math/rand/v2. Must be safe for concurrent use.
	Random func() uint32
	// The time in milliseconds, of any origin, wrapping; nil: a monotonic clock. Must be safe for concurrent use.
	Now func() uint32
}

// Router decides requests by the bundle that is in force, for any number of goroutines.
//
// It has a bounded number of instances of the core, which are made when they are first needed and kept: an instance that is
// dropped would have to load every rule again. Each counts round robin, requests under way and failures for itself, as workers
// of a proxy do. An instance that traps is replaced.
type Router struct {
	core   *Core
	random func() uint32
	now    func() uint32
	pool   *pool
	// Bundle and states of peers that are in force.
	current atomic.Pointer[state]
	// Held by those who change it.
	change sync.Mutex
	// Has room for the one call that warms: two of them would wait for each other's instances.
	warming chan struct{}
	traps   atomic.Uint64
}

// state is what every instance is to hold. It is never changed.
type state struct {
	bundle *Bundle
	peers  peerStates
}

// NewRouter compiles the core and makes a first instance, so that what is wrong is known at once. Until a bundle is loaded every
// request is answered with 404.
func NewRouter(ctx context.Context, options Options) (*Router, error) {
	core, err := CompileCore(ctx, options.Wasm, options.MaxMemory)
	if err != nil {
		return nil, err
	}
	r := &Router{core: core, random: options.Random, now: options.Now, warming: make(chan struct{}, 1)}
	if r.random == nil {
		r.random = rand.Uint32
	}
	if r.now == nil {
		start := time.Now()
		r.now = func() uint32 { return uint32(time.Since(start).Milliseconds()) }
	}
	most := options.Instances
	if most <= 0 {
		most = runtime.GOMAXPROCS(0)
	}
	r.pool = newPool(most, func() (*member, error) { return newMember(core) })
	r.current.Store(&state{bundle: &Bundle{}})
	first, err := r.take(ctx)
	if err != nil {
		_ = core.Close(ctx)
		return nil, err
	}
	r.pool.put(first)
	return r, nil
}

// Close waits for decisions that are being made, and frees everything. Calls after it answer [ErrClosed].
func (r *Router) Close(ctx context.Context) error {
	r.change.Lock()
	defer r.change.Unlock()
	if err := r.pool.close(ctx); err != nil {
		return err
	}
	return r.core.Close(ctx)
}

// Warm makes all instances that there may be, and loads the bundle in force into each. Without it they are made when requests first need
// them, which saves their memory where few requests come at once, and costs those requests the time of loading.
func (r *Router) Warm(ctx context.Context) error {
	select {
	case r.warming <- struct{}{}:
		defer func() { <-r.warming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	members := make([]*member, 0, r.pool.most)
	defer func() {
		for _, m := range members {
			r.pool.put(m)
		}
	}()
	for range r.pool.most {
		m, err := r.take(ctx)
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	return nil
}

// Bundle is the bundle in force; an empty one until the first is loaded.
func (r *Router) Bundle() *Bundle { return r.current.Load().bundle }

// Traps is how often an instance trapped and was replaced.
func (r *Router) Traps() uint64 { return r.traps.Load() }

// Decide decides a request; the decision is written over. It waits while all instances are in use, and answers the error of ctx
// when that ends first. Any other error is a fault of the core, see [Table.Decide]. Attempt.Done is to be called for each
// decision to proxy.
func (r *Router) Decide(ctx context.Context, request *Request, decision *Decision) error {
	m, err := r.take(ctx)
	if err != nil {
		return err
	}
	now := uint32(0)
	if m.holds.bundle.timed {
		now = r.now()
	}
	err = m.table.Decide(request, r.random(), now, decision)
	decision.Attempt.member = m
	r.give(m, err)
	return err
}

// Retry picks another peer for a decision, none of those that were tried. [ErrBusy] and [ErrNoPeer] say that there is none.
func (r *Router) Retry(ctx context.Context, decision *Decision, tried []*Peer) (Attempt, error) {
	m, err := r.take(ctx)
	if err != nil {
		return Attempt{}, err
	}
	var hash *uint32
	if decision.Hashed {
		hash = &decision.Hash
	}
	attempt, err := m.table.Pick(decision.UpstreamKey, hash, tried, r.random(), r.now())
	attempt.member = m
	r.give(m, err)
	return attempt, err
}

// Peers are the peers of an upstream in canonical order, with the counts of one of the instances.
func (r *Router) Peers(ctx context.Context, upstreamKey string) ([]PeerStatus, error) {
	m, err := r.take(ctx)
	if err != nil {
		return nil, err
	}
	peers, err := m.table.Peers(upstreamKey)
	r.give(m, err)
	return peers, err
}

// Done says that the try with a peer is over, once for each decision to proxy and each retry. failed counts towards the failures that
// take a peer out for a while. It never waits: the instance that picked the peer hears of it before its next decision.
func (a *Attempt) Done(failed bool) {
	if a.member != nil && a.counted {
		a.member.note(ending{a.token, failed})
	}
	a.member = nil
}

// take gives an instance that holds what is in force now.
func (r *Router) take(ctx context.Context) (*member, error) {
	m, err := r.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	if m.fresh(r.current.Load()) && !m.hasEndings() {
		return m, nil
	}
	if err := r.update(m); err != nil {
		r.drop(m, err)
		return nil, err
	}
	return m, nil
}

// update brings an instance to what is in force.
func (r *Router) update(m *member) error {
	now := r.now()
	if err := m.drain(now); err != nil {
		return err
	}
	return m.bring(r.current.Load())
}

// give puts an instance back, or drops it where it has trapped.
func (r *Router) give(m *member, err error) {
	if err != nil && isTrap(err) {
		r.drop(m, err)
		return
	}
	r.pool.put(m)
}

func isTrap(err error) bool {
	var trap *TrapError
	return errors.As(err, &trap)
}

func (r *Router) drop(m *member, err error) {
	if isTrap(err) {
		r.traps.Add(1)
	}
	m.table.Close()
	r.pool.dropped()
}
