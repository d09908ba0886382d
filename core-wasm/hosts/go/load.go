package corehost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"
)

// Load puts a bundle in force. It is loaded into a fresh instance first, and refused with an [*Error] where the core does not
// take all of it; the bundle before then stays in force. No request is lost or waits: each decision is made by one bundle, and every
// one that begins after Load has returned by the new one. What upstreams keep (cursors, counts, states) lives on.
func (r *Router) Load(ctx context.Context, bundle *Bundle) error {
	r.change.Lock()
	defer r.change.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.pool.isClosed() {
		return ErrClosed
	}
	trial, err := r.core.NewTable(ctx)
	if err != nil {
		return err
	}
	defer trial.Close()
	if err := trial.Load(bundle); err != nil {
		return err
	}
	before := r.current.Load()
	r.publish(&state{bundle, before.peers.of(bundle)})
	return nil
}

// LoadFile reads a bundle from a file and puts it in force, as [Router.Load] does.
func (r *Router) LoadFile(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bundle, err := ReadBundle(data)
	if err == nil {
		err = r.Load(ctx, bundle)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Watch loads the file, and again whenever it is another one, until ctx ends; it looks once in each interval (0: a second). report is
// told of each attempt: nil, or why the bundle before stays in force. A bundle that is refused ([*Error]) is not tried again; what may
// pass, such as a file that can't be read, is tried again in the next interval. It also ends with the router. "njet-kic compile" replaces
// its file whole, so no part is ever read.
func (r *Router) Watch(ctx context.Context, path string, interval time.Duration, report func(error)) {
	if interval <= 0 {
		interval = time.Second
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var seen fs.FileInfo
	for {
		found, err := os.Stat(path)
		if err == nil && !sameFile(seen, found) {
			err := r.LoadFile(ctx, path)
			report(err)
			if errors.Is(err, ErrClosed) {
				return
			}
			var refused *Error
			if err == nil || errors.As(err, &refused) {
				seen = found
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func sameFile(a, b fs.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// PeerChange is a new state of a peer, whose id is that of [Peer].
type PeerChange struct {
	UpstreamKey string
	PeerID      string
	State       PeerState
}

// SetPeerStates tells what active checks have found out; give many at once where many change. Upstreams and peers that are not
// in the bundle are passed over. Every decision that begins after it has returned knows them.
func (r *Router) SetPeerStates(changes ...PeerChange) {
	r.change.Lock()
	defer r.change.Unlock()
	before := r.current.Load()
	peers := maps.Clone(before.peers)
	if peers == nil {
		peers = peerStates{}
	}
	now := r.now()
	known := map[string]map[string]uint32{}
	for _, change := range changes {
		ids, seen := known[change.UpstreamKey]
		if !seen {
			ids = before.bundle.peerIDs(change.UpstreamKey)
			known[change.UpstreamKey] = ids
		}
		name := peerName{change.UpstreamKey, change.PeerID}
		if _, exists := ids[change.PeerID]; !exists || peers[name].state == change.State {
			continue
		}
		if change.State == Unchecked {
			delete(peers, name)
		} else {
			peers[name] = checked{change.State, now}
		}
	}
	r.publish(&state{before.bundle, peers})
}

// peerIDs are the ids of the peers of an upstream. The core has accepted the bundle.
func (b *Bundle) peerIDs(upstreamKey string) map[string]uint32 {
	image, known := b.images[recordKey{kindPeerSet, upstreamKey}]
	if !known {
		return nil
	}
	return readPeerSet(image).indexes
}

// of is what still counts in a bundle: states of peers that are in it.
func (p peerStates) of(bundle *Bundle) peerStates {
	kept := peerStates{}
	known := map[string]map[string]uint32{}
	for name, state := range p {
		ids, seen := known[name.upstream]
		if !seen {
			ids = bundle.peerIDs(name.upstream)
			known[name.upstream] = ids
		}
		if _, stays := ids[name.peer]; stays {
			kept[name] = state
		}
	}
	return kept
}

// publish puts a state in force, and brings instances that are idle to it, so that no request has to wait for that. An instance that is
// in use is brought to it when it is next taken.
func (r *Router) publish(next *state) {
	r.current.Store(next)
	stale := func(m *member) bool { return !m.fresh(next) }
	r.pool.idle(stale, func(m *member) {
		err := r.update(m)
		if err != nil {
			r.drop(m, err)
			return
		}
		r.pool.put(m)
	})
}
