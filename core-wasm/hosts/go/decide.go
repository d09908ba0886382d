package corehost

import (
	"encoding/binary"
	"strconv"
)

// Decide decides a request. random chooses the entry of a split and the place where a fresh upstream begins; now is the time in
// milliseconds, of any origin, wrapping. The decision is written over. An error is never the request's: the core trapped, or
// has no memory left.
func (t *Table) Decide(request *Request, random, now uint32, decision *Decision) error {
	in := t.in
	settings := decision.Settings[:0]
	*decision = Decision{Settings: settings}
	host, target := request.Host, request.Target
	if len(host)+len(target) > inputSize-4 {
		decision.Action, decision.Status = Return, 414
		return nil
	}
	t.valuesUsed = 0
	for ; len(t.outgrown) > 0; t.outgrown = t.outgrown[:len(t.outgrown)-1] {
		in.release(t.outgrown[len(t.outgrown)-1])
	}
	copy(in.bytes[t.input:], host)
	copy(in.bytes[t.input+uint32(len(host)+3)&^3:], target)
	in.setWord(t.context+wordNow, now)
	flags := uint32(0)
	if request.TLS {
		flags = 1
	}
	status, err := in.call(&in.route, t.context, uint32(len(host)), uint32(len(target)), flags, random)
	for err == nil && status == statusNeed {
		if err = t.fillIn(request); err == nil {
			status, err = in.call(&in.resume, t.context)
		}
	}
	if err := told(status, err, "deciding a request"); err != nil {
		return err
	}
	return t.read(request, decision)
}

// fillIn gives the core the values that it asks for. They stay until the next request.
func (t *Table) fillIn(request *Request) error {
	count, need := t.word(wordNeedCount), t.word(wordNeeds)
	for ; count > 0; count, need = count-1, need+needSize {
		value, found := t.value(request, t.in.word(need))
		if !found {
			continue
		}
		if uint32(len(value)) > t.valuesSize-t.valuesUsed {
			if err := t.growValues(len(value)); err != nil {
				return err
			}
		}
		at := t.values + t.valuesUsed
		copy(t.in.bytes[at:], value)
		t.in.setWord(need+4, at)
		t.in.setWord(need+8, uint32(len(value)))
		t.valuesUsed += uint32(len(value)+3) &^ 3
	}
	return nil
}

// value is what a need asks for: a fact of the connection, or a header.
func (t *Table) value(request *Request, id uint32) (string, bool) {
	switch id {
	case 0:
		address, _ := request.client()
		return address, true
	case 1:
		_, port := request.client()
		return strconv.Itoa(int(port)), true
	case 2:
		return request.Method, true
	case 3:
		return request.Protocol, true
	}
	if request.Headers == nil {
		return "", false
	}
	name, known := t.names[id]
	if !known {
		name = string(t.in.view(id+factCount, t.in.word(id)))
		t.names[id] = name
	}
	return request.Headers.HeaderValue(name)
}

// client is the address and port of the client.
func (r *Request) client() (address string, port uint16) {
	if r.ClientAddress == "" {
		if source, ok := r.Headers.(ClientSource); ok {
			return source.Client()
		}
	}
	return r.ClientAddress, r.ClientPort
}

// growValues goes on in a larger block; values that stand in the old one stay there until the next request.
func (t *Table) growValues(size int) error {
	grown := max(int(t.valuesSize), size) * 2
	at, err := t.in.allocate(grown)
	if err != nil {
		return err
	}
	t.outgrown = append(t.outgrown, t.values)
	t.values, t.valuesSize, t.valuesUsed = at, uint32(grown), 0
	return nil
}

// text copies bytes of the memory; where they are the same as a text that is there already, that one is taken.
func (t *Table) text(at, length uint32, same string) string {
	bytes := t.in.view(at, length)
	if string(bytes) == same {
		return same
	}
	return string(bytes)
}

// words is the public part of a context. At constant places of an array no bounds are checked.
type words [wordHash + 4]byte

func (w *words) at(offset int) uint32 { return binary.LittleEndian.Uint32(w[offset:]) }

// read copies the decision out of the context.
func (t *Table) read(request *Request, decision *Decision) error {
	w := (*words)(t.in.bytes[t.context:])
	decision.Action = Action(w.at(wordAction))
	decision.By = By(w.at(wordOrigin))
	marks := w.at(wordMarks)
	switch decision.By {
	case ByRoute:
		decision.Rule = w.at(wordRoute)
	case ByGuard:
		decision.Rule = w.at(wordGuard)
	}
	if at := w.at(wordShard); at != 0 {
		decision.shard = t.shard(at)
	}
	text, length := w.at(wordText), w.at(wordTextLength)
	switch decision.Action {
	case Proxy:
		decision.Text = t.text(text, length, request.Target)
		set := t.readUpstream(decision, w.at(wordPeers))
		t.readPeer(&decision.Attempt, set, w)
		decision.Attempt.NewSession = decision.Attempt.Peer.Session != "" && marks&markNewSession != 0
	case Redirect:
		decision.Status = int(w.at(wordStatus))
		decision.Text = t.text(text, length, "")
	default:
		decision.Status = int(w.at(wordStatus))
		if size := w.at(wordTypeLength); size > 0 {
			decision.ContentType = t.text(w.at(wordType), size, "text/plain")
			decision.Text = t.text(text, length, "")
		}
		if at := w.at(wordPeers); at != 0 {
			t.readUpstream(decision, at)
		}
		decision.Busy = marks&markBusy != 0
	}
	if marks&markHashed != 0 && (decision.Action == Proxy || decision.Busy) {
		decision.Hash, decision.Hashed = w.at(wordHash), true
	}
	if size := w.at(wordSettingsLength); size > 0 {
		return t.readSettings(decision, w.at(wordSettings), size)
	}
	return nil
}

// shard is the shard whose image stands at an address.
func (t *Table) shard(at uint32) *shard {
	known := t.shards[at]
	if known == nil {
		pattern, host := patternParts(t.in.bytes[at:])
		key := patternText(pattern, string(host))
		known = &shard{key, t.bundle.images[recordKey{kindShard, key}]}
		t.shards[at] = known
	}
	return known
}

func (t *Table) readUpstream(decision *Decision, at uint32) *peerSet {
	set := t.peerSet(at)
	decision.HasUpstream, decision.UpstreamKey, decision.Upstream = true, set.key, set.upstream
	return set
}

// readPeer reads the peer of the set that the last call picked.
func (t *Table) readPeer(attempt *Attempt, set *peerSet, w *words) {
	index := w.at(wordPeer)
	attempt.Peer, attempt.Index, attempt.Position = set.peers[index], index, w.at(wordPosition)
	attempt.token, attempt.counted = t.token(set, index), set.counted
}

func (t *Table) readSettings(decision *Decision, at, size uint32) error {
	for end := at + size; at < end; {
		head, length := t.in.word(at), t.in.word(at+4)
		setting := Setting{Tag: uint16(head) &^ 0x8000, Flags: uint16(head >> 16)}
		if length >= 4 {
			setting.Name = t.text(at+settingHeader+4, t.in.word(at+settingHeader), "")
		}
		if rendered(setting.Tag) {
			size, err := t.in.call(&t.in.renderSetting, t.context, uint32(len(decision.Settings)))
			if err != nil {
				return err
			}
			// One that does not fit is left empty.
			if size > 0 {
				setting.Value = t.text(t.word(wordRendered), uint32(size), "")
			}
		}
		decision.Settings = append(decision.Settings, setting)
		at += settingHeader + length
	}
	return nil
}

// Pick picks a peer of an upstream as its peers are now, none of those that were tried: for a retry, or for a request that waited.
// hash is that of the decision, or nil. [ErrBusy] and [ErrNoPeer] say that there is none.
func (t *Table) Pick(upstreamKey string, hash *uint32, tried []*Peer, random, now uint32) (Attempt, error) {
	set, err := t.findPeers(upstreamKey)
	if err != nil {
		return Attempt{}, err
	}
	if set == nil {
		return Attempt{}, ErrNoPeer
	}
	if err := t.room(len(tried)*4 + len(upstreamKey)); err != nil {
		return Attempt{}, err
	}
	count := uint32(0)
	for _, peer := range tried {
		// Who has left the upstream can't be picked again.
		if index, known := set.indexes[peer.ID]; known {
			t.in.setWord(t.scratch+count*4, t.token(set, index))
			count++
		}
	}
	key := t.scratch + count*4
	copy(t.in.bytes[key:], upstreamKey)
	hashed, value := uint32(0), uint32(0)
	if hash != nil {
		hashed, value = 1, *hash
	}
	t.in.setWord(t.context+wordNow, now)
	in := t.in
	status, err := in.call(&in.peerPick, t.context, key, uint32(len(upstreamKey)), hashed, value, t.scratch, count, random)
	switch {
	case err != nil:
		return Attempt{}, err
	case status == statusBusy:
		return Attempt{}, ErrBusy
	case status == statusState:
		return Attempt{}, ErrNoPeer
	case status < 0:
		return Attempt{}, statusError(status, "picking a peer")
	}
	var attempt Attempt
	w := (*words)(t.in.bytes[t.context:])
	t.readPeer(&attempt, t.peerSet(w.at(wordPeers)), w)
	return attempt, nil
}

// Done says that the try with a peer that this table gave is over; to be called once for each. failed counts towards the
// failures that take a peer out. Of a peer that has left its upstream since, nothing counts.
func (t *Table) Done(attempt *Attempt, failed bool, now uint32) error {
	return t.done(attempt.token, failed, now)
}

func (t *Table) done(token uint32, failed bool, now uint32) error {
	t.in.setWord(t.context+wordNow, now)
	value := uint32(0)
	if failed {
		value = 1
	}
	status, err := t.in.call(&t.in.peerDone, t.context, token, value)
	return told(status, err, "ending a try")
}
