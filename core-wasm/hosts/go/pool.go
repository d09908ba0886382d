package corehost

import (
	"context"
	"slices"
	"sync"
)

// pool is a bounded free list. It is no sync.Pool, which drops what it holds when memory is collected: an instance that is made
// anew has to load all rules.
type pool struct {
	most int
	make func() (*member, error)

	mutex sync.Mutex
	// The one that came back last is taken first: its memory is in the caches.
	free []*member
	// Those that exist, in use or not.
	made    int
	waiters []chan *member
	closed  bool
	// Closed once nothing exists any more.
	empty chan struct{}
}

func newPool(most int, make func() (*member, error)) *pool {
	return &pool{most: most, make: make}
}

// take gives a free member, makes one, or waits for one in the order of the callers.
func (p *pool) take(ctx context.Context) (*member, error) {
	// Who has gone gets nothing, also where something is free.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		return nil, ErrClosed
	}
	if last := len(p.free) - 1; last >= 0 {
		m := p.free[last]
		p.free[last] = nil
		p.free = p.free[:last]
		p.mutex.Unlock()
		return m, nil
	}
	if p.made < p.most {
		p.made++
		p.mutex.Unlock()
		return p.makeOne()
	}
	mine := make(chan *member, 1)
	p.waiters = append(p.waiters, mine)
	p.mutex.Unlock()
	select {
	case m := <-mine:
		return p.received(m)
	case <-ctx.Done():
		p.withdraw(mine)
		return nil, ctx.Err()
	}
}

func (p *pool) makeOne() (*member, error) {
	m, err := p.make()
	if err != nil {
		p.dropped()
		return nil, err
	}
	return m, nil
}

// received is what a waiter was sent: a member, or nil for leave to make one or because of the end.
func (p *pool) received(m *member) (*member, error) {
	if m != nil {
		return m, nil
	}
	if p.isClosed() {
		p.dropped()
		return nil, ErrClosed
	}
	return p.makeOne()
}

func (p *pool) isClosed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.closed
}

// withdraw ends waiting. What has been sent meanwhile goes to the next one.
func (p *pool) withdraw(mine chan *member) {
	p.mutex.Lock()
	if i := slices.Index(p.waiters, mine); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
		p.mutex.Unlock()
		return
	}
	p.mutex.Unlock()
	if m := <-mine; m != nil {
		p.put(m)
	} else {
		p.dropped()
	}
}

// put gives a member back.
func (p *pool) put(m *member) {
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		m.table.Close()
		p.dropped()
		return
	}
	if len(p.waiters) > 0 {
		first := p.waiters[0]
		p.waiters = slices.Delete(p.waiters, 0, 1)
		p.mutex.Unlock()
		first <- m
		return
	}
	p.free = append(p.free, m)
	p.mutex.Unlock()
}

// dropped says that a member is gone. Whoever waits may make another one.
func (p *pool) dropped() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.waiters) > 0 && !p.closed {
		first := p.waiters[0]
		p.waiters = slices.Delete(p.waiters, 0, 1)
		first <- nil
		return
	}
	p.made--
	if p.closed && p.made == 0 {
		close(p.empty)
	}
}

// idle takes every free member for which stale holds, and gives them to use, one after another.
func (p *pool) idle(stale func(*member) bool, use func(*member)) {
	for {
		p.mutex.Lock()
		i := slices.IndexFunc(p.free, stale)
		if i < 0 {
			p.mutex.Unlock()
			return
		}
		m := p.free[i]
		p.free = slices.Delete(p.free, i, i+1)
		p.mutex.Unlock()
		use(m)
	}
}

// close frees all members, and waits for those in use.
func (p *pool) close(ctx context.Context) error {
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		return ErrClosed
	}
	p.closed = true
	p.empty = make(chan struct{})
	free, waiters := p.free, p.waiters
	p.free, p.waiters = nil, nil
	p.made += len(waiters)
	if p.made == 0 {
		close(p.empty)
	}
	p.mutex.Unlock()
	for _, waiter := range waiters {
		waiter <- nil
	}
	for _, m := range free {
		m.table.Close()
		p.dropped()
	}
	select {
	case <-p.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
