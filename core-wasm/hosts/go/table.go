package corehost

import (
	"bytes"
	"context"
	"strconv"
)

// PeerState is what active checks have found out about a peer.
type PeerState uint8

// States of peers. A peer that nobody checks stays unchecked, and may be picked.
const (
	Unchecked PeerState = iota
	Up
	Down
	Draining
)

// PeerStatus is a peer as a table sees it.
type PeerStatus struct {
	*Peer
	State PeerState
	// Out because of failed requests.
	Out bool
	// Requests under way, where they are counted.
	UnderWay uint32
}

// Table is the core with rules and peers, for one goroutine at a time. A [Router] is many of them for any number.
type Table struct {
	in      *instance
	table   uint32
	context uint32
	input   uint32
	// Room for header values, which stay until the next request.
	values     uint32
	valuesSize uint32
	valuesUsed uint32
	// Room that became too small during the request at hand.
	outgrown []uint32
	// Room for arguments that go by address.
	scratch     uint32
	scratchSize uint32

	bundle *Bundle
	// By address of what they name, until the table changes.
	names  map[uint32]string
	shards map[uint32]*shard
	sets   map[uint32]*peerSet
}

const firstValues, firstScratch = 1 << 14, 1 << 10

// NewTable makes an empty table.
func (c *Core) NewTable(ctx context.Context) (*Table, error) {
	in, err := c.newInstance(ctx)
	if err != nil {
		return nil, err
	}
	t := &Table{in: in, valuesSize: firstValues, scratchSize: firstScratch}
	if err := t.begin(); err != nil {
		in.close()
		return nil, err
	}
	return t, nil
}

func (t *Table) begin() error {
	in := t.in
	table, err := in.call(&in.tableNew)
	if err != nil {
		return err
	}
	context, err := in.call(&in.contextNew, uint32(table), inputSize, outputSize)
	if err != nil {
		return err
	}
	if table == 0 || context == 0 {
		return statusError(-9, "making a table")
	}
	t.table, t.context = uint32(table), uint32(context)
	if t.values, err = in.allocate(firstValues); err != nil {
		return err
	}
	if t.scratch, err = in.allocate(firstScratch); err != nil {
		return err
	}
	t.input = t.word(wordInput)
	t.changed()
	return nil
}

// Close frees the memory of the table, which must not be used afterwards.
func (t *Table) Close() { t.in.close() }

// MemoryUsed is the bytes that the table has in use in its core.
func (t *Table) MemoryUsed() uint32 {
	used, _ := t.in.call(&t.in.memoryUsed)
	return uint32(used)
}

// word is a public word of the context.
func (t *Table) word(offset uint32) uint32 { return t.in.word(t.context + offset) }

// changed forgets what was kept by address.
func (t *Table) changed() {
	t.names, t.shards, t.sets = map[uint32]string{}, map[uint32]*shard{}, map[uint32]*peerSet{}
	t.in.renew()
}

// Load brings the table to what the bundle says. Only what differs from the bundle before is touched: cursors and counts of
// upstreams that stay the same go on. On an error the table may hold parts of both: close it, or load the old bundle again. A
// [Router] loads a bundle into a fresh table before it takes it.
func (t *Table) Load(bundle *Bundle) error {
	var before map[recordKey][]byte
	if t.bundle != nil {
		before = t.bundle.images
	}
	defer t.changed()
	for _, kind := range []byte{kindPeerSet, kindShard} {
		for _, name := range bundle.order {
			image := bundle.images[name]
			if name.kind != kind || bytes.Equal(before[name], image) {
				continue
			}
			if err := t.loadImage(name, image); err != nil {
				return err
			}
		}
	}
	for name, image := range before {
		if _, stays := bundle.images[name]; stays {
			continue
		}
		if err := t.remove(name, image); err != nil {
			return err
		}
	}
	t.bundle = bundle
	return nil
}

func (t *Table) loadImage(name recordKey, image []byte) error {
	status, err := t.in.placed(image, func(at, length uint32) (int32, error) {
		if name.kind == kindShard {
			return t.in.call(&t.in.shardLoad, t.table, at, length, 0)
		}
		return t.in.call(&t.in.peersLoad, t.table, at, length)
	})
	return told(status, err, "loading "+strconv.Quote(name.key))
}

func (t *Table) remove(name recordKey, image []byte) error {
	key := []byte(name.key)
	var pattern uint32
	if name.kind == kindShard {
		pattern, key = patternParts(image)
	}
	status, err := t.in.placed(key, func(at, length uint32) (int32, error) {
		if name.kind == kindShard {
			return t.in.call(&t.in.shardRemove, t.table, pattern, at, length)
		}
		return t.in.call(&t.in.peersRemove, t.table, at, length)
	})
	return told(status, err, "removing "+strconv.Quote(name.key))
}

// told is the error of a call: its own, or that of a status below zero.
func told(status int32, err error, what string) error {
	if err == nil && status < 0 {
		err = statusError(status, what)
	}
	return err
}

// put copies texts, one after another, to where arguments go by address.
func (t *Table) room(size int) error {
	if size <= int(t.scratchSize) {
		return nil
	}
	grown, err := t.in.allocate(size * 2)
	if err != nil {
		return err
	}
	t.in.release(t.scratch)
	t.scratch, t.scratchSize = grown, uint32(size*2)
	return nil
}

// findPeers is the peer set of an upstream as it is now; nil if there is none.
func (t *Table) findPeers(key string) (*peerSet, error) {
	if err := t.room(len(key)); err != nil {
		return nil, err
	}
	copy(t.in.bytes[t.scratch:], key)
	at, err := t.in.call(&t.in.peersFind, t.table, t.scratch, uint32(len(key)))
	if err != nil || at == 0 {
		return nil, err
	}
	return t.peerSet(uint32(at)), nil
}

// peerSet is what is known of the peer set whose image stands at an address.
func (t *Table) peerSet(at uint32) *peerSet {
	set := t.sets[at]
	if set == nil {
		size := t.in.word(at + 16)
		set = readPeerSet(t.in.view(at, size))
		set.tokens = (at + size + 3) &^ 3
		if t.bundle != nil {
			set.upstream = t.bundle.upstreams[set.key]
		}
		t.sets[at] = set
	}
	return set
}

func (t *Table) token(set *peerSet, index uint32) uint32 { return t.in.word(set.tokens + index*4) }

// SetPeerState tells what an active check has found out. now is in milliseconds, of any origin, and the same for all calls
// of a table. Upstreams and peers that are not known are passed over.
func (t *Table) SetPeerState(upstreamKey, peerID string, state PeerState, now uint32) error {
	set, err := t.findPeers(upstreamKey)
	if err != nil || set == nil {
		return err
	}
	index, known := set.indexes[peerID]
	if !known {
		return nil
	}
	status, err := t.in.call(&t.in.peerState, t.table, t.token(set, index), uint32(state), now)
	return told(status, err, "setting the state of a peer")
}

// Peers are the peers of an upstream in canonical order; none for one that is not known.
func (t *Table) Peers(upstreamKey string) ([]PeerStatus, error) {
	set, err := t.findPeers(upstreamKey)
	if err != nil || set == nil {
		return nil, err
	}
	peers := make([]PeerStatus, len(set.peers))
	for i, peer := range set.peers {
		status, err := t.in.call(&t.in.peerStatus, t.context, t.token(set, uint32(i)))
		if err := told(status, err, "asking for a peer"); err != nil {
			return nil, err
		}
		peers[i] = PeerStatus{peer, PeerState(status & 3), status&4 != 0, uint32(status) >> 3}
	}
	return peers, nil
}
