package corehost

import (
	"context"
	"sync"
)

// HealthState is what is known of a peer that is checked.
type HealthState uint8

// States of the machine of core-wasm/ABI.md, "Health checks".
const (
	HealthUnchecked HealthState = iota
	HealthUp
	HealthDown
	HealthDraining
	// Up, with a weight that still rises.
	HealthSlowStart
)

// Peer is the state that a [Router] is to be told.
func (s HealthState) Peer() PeerState {
	if s == HealthSlowStart {
		return Up
	}
	return PeerState(s)
}

// HealthRule says how many results in a row change the state of a peer.
type HealthRule struct {
	// Passes that bring it up, and failures that take it down; 1 to 32,767.
	Passes, Fails uint16
	// Milliseconds in HealthSlowStart after it was down; 0: none.
	SlowStart uint32
	// It takes no new clients: its checks only tell whether it is down.
	Drains bool
}

// HealthResult is the result of one check.
type HealthResult struct {
	Slot   uint32
	Passed bool
}

// HealthTransition is a peer that is in another state now.
type HealthTransition struct {
	Slot  uint32
	State HealthState
}

// HealthTracker is the rise and fall machine of active health checks, as the controller has it. It checks nothing itself: whoever does
// hands results in, and tells a [Router] what has changed. It may be used by any number of goroutines. Times are in milliseconds of
// any clock, modulo 2^32.
type HealthTracker struct {
	mutex   sync.Mutex
	in      *instance
	tracker uint32
	slots   uint32
	// Room for a batch of results, where transitions are written too.
	batch     uint32
	batchSize int
}

const (
	mostSlots  = 1 << 22
	drains     = 8
	firstBatch = 256
)

// NewHealthTracker makes a tracker with so many slots, all of them free; the caller says which slot is which peer's.
func (c *Core) NewHealthTracker(ctx context.Context, slots uint32) (*HealthTracker, error) {
	if slots == 0 || slots > mostSlots {
		return nil, &Error{CodeLimit, "a tracker has 1 to 4,194,304 slots"}
	}
	in, err := c.newInstance(ctx)
	if err != nil {
		return nil, err
	}
	tracker, err := in.call(&in.healthNew, slots, 0)
	if err == nil && tracker == 0 {
		err = statusError(-9, "making a health tracker")
	}
	if err != nil {
		in.close()
		return nil, err
	}
	in.renew()
	return &HealthTracker{in: in, tracker: uint32(tracker), slots: slots}, nil
}

// Close frees the tracker, which must not be used afterwards.
func (t *HealthTracker) Close() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.in.close()
}

// Grow gives the tracker more slots. What is known stays.
func (t *HealthTracker) Grow(slots uint32) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if slots <= t.slots {
		return nil
	}
	if slots > mostSlots {
		return &Error{CodeLimit, "a tracker has at most 4,194,304 slots"}
	}
	grown, err := t.in.call(&t.in.healthNew, slots, t.tracker)
	if err == nil && grown == 0 {
		err = statusError(-9, "growing a health tracker")
	}
	if err != nil {
		return err
	}
	t.in.renew()
	t.tracker, t.slots = uint32(grown), slots
	return nil
}

// Set gives a slot a rule and the state to begin with.
func (t *HealthTracker) Set(slot uint32, rule HealthRule, state HealthState, now uint32) error {
	word := uint32(state)
	if rule.Drains {
		word |= drains
	}
	return t.set(slot, uint32(rule.Passes)|uint32(rule.Fails)<<16, rule.SlowStart, word, now, rule.Passes > 0 && rule.Fails > 0)
}

// Free makes a slot free.
func (t *HealthTracker) Free(slot uint32) error { return t.set(slot, 0, 0, 0, 0, true) }

func (t *HealthTracker) set(slot, rule, slowStart, state, now uint32, sound bool) error {
	if !sound {
		return &Error{CodeSource, "a rule has at least one pass and one failure"}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	status, err := t.in.call(&t.in.healthSet, t.tracker, slot, rule, slowStart, state, now)
	return told(status, err, "setting the health of a peer")
}

// State is the state of a slot, with its streak: passes in a row, or below zero failures in a row.
func (t *HealthTracker) State(slot uint32) (state HealthState, streak int, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	status, err := t.in.call(&t.in.healthState, t.tracker, slot)
	if err := told(status, err, "asking for the health of a peer"); err != nil {
		return 0, 0, err
	}
	return HealthState(status & 255), int(status>>8) - 1<<15, nil
}

// Report takes results in, in order, and answers who is in another state now. Results of free slots are passed over.
func (t *HealthTracker) Report(now uint32, results ...HealthResult) ([]HealthTransition, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := t.room(len(results)); err != nil {
		return nil, err
	}
	for i, result := range results {
		word := result.Slot << 1
		if result.Passed {
			word |= 1
		}
		t.in.setWord(t.batch+uint32(i)*4, word)
	}
	count, err := t.in.call(&t.in.healthReport, t.tracker, t.batch, uint32(len(results)), now, t.batch)
	if err := told(count, err, "reporting results of health checks"); err != nil {
		return nil, err
	}
	transitions := make([]HealthTransition, count)
	for i := range transitions {
		word := t.in.word(t.batch + uint32(i)*4)
		transitions[i] = HealthTransition{word >> 3, HealthState(word & 7)}
	}
	return transitions, nil
}

func (t *HealthTracker) room(count int) error {
	if count <= t.batchSize {
		return nil
	}
	size := max(firstBatch, count)
	at, err := t.in.allocate(size * 4)
	if err != nil {
		return err
	}
	if t.batch != 0 {
		t.in.release(t.batch)
	}
	t.batch, t.batchSize = at, size
	return nil
}
