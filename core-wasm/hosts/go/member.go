package corehost

import (
	"context"
	"sync"
	"sync/atomic"
)

// peerName names a peer of an upstream.
type peerName struct{ upstream, peer string }

// checked is what a check has found, and when.
type checked struct {
	state PeerState
	since uint32
}

// peerStates are the states that are not Unchecked. A map is never changed once it is in a state.
type peerStates map[peerName]checked

// ending is the end of a try that an instance has not heard of yet.
type ending struct {
	token  uint32
	failed bool
}

// member is an instance of a router with what it is known to hold. Only the endings are touched by who has not taken it.
type member struct {
	table *Table
	holds *state

	mutex   sync.Mutex
	endings []ending
	// The length of endings, to be looked at without the mutex.
	noted atomic.Int32
}

func newMember(core *Core) (*member, error) {
	table, err := core.NewTable(context.Background())
	if err != nil {
		return nil, err
	}
	return &member{table: table, holds: &state{bundle: &Bundle{}}}, nil
}

func (m *member) fresh(current *state) bool { return m.holds == current }

func (m *member) hasEndings() bool { return m.noted.Load() != 0 }

func (m *member) note(end ending) {
	m.mutex.Lock()
	m.endings = append(m.endings, end)
	m.noted.Store(int32(len(m.endings)))
	m.mutex.Unlock()
}

// drain tells the core of the tries that have ended.
func (m *member) drain(now uint32) error {
	if !m.hasEndings() {
		return nil
	}
	m.mutex.Lock()
	endings := m.endings
	m.endings = nil
	m.noted.Store(0)
	m.mutex.Unlock()
	for _, end := range endings {
		if err := m.table.done(end.token, end.failed, now); err != nil {
			return err
		}
	}
	return nil
}

// bring loads what is different in another state.
func (m *member) bring(to *state) error {
	before := m.holds
	if before == to {
		return nil
	}
	loaded := before.bundle != to.bundle
	if loaded {
		if err := m.table.Load(to.bundle); err != nil {
			return err
		}
	}
	for name, now := range to.peers {
		// A peer that a bundle has brought is new to the core, whatever was known of it before.
		if loaded || before.peers[name] != now {
			if err := m.table.SetPeerState(name.upstream, name.peer, now.state, now.since); err != nil {
				return err
			}
		}
	}
	for name := range before.peers {
		if _, stays := to.peers[name]; !stays {
			if err := m.table.SetPeerState(name.upstream, name.peer, Unchecked, 0); err != nil {
				return err
			}
		}
	}
	m.holds = to
	return nil
}
