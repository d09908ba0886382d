package corehost

import "strconv"

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
		return request.ClientAddress, true
	case 1:
		return strconv.Itoa(int(request.ClientPort)), true
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

// read copies the decision out of the context.
func (t *Table) read(request *Request, decision *Decision) error {
	decision.Action = Action(t.word(wordAction))
	decision.Status = int(t.word(wordStatus))
	decision.By = By(t.word(wordOrigin))
	marks := t.word(wordMarks)
	t.readOrigin(decision)
	text, length := t.word(wordText), t.word(wordTextLength)
	switch decision.Action {
	case Proxy:
		decision.Status = 0
		decision.Text = t.text(text, length, request.Target)
		t.readUpstream(decision)
		t.readPeer(&decision.Attempt)
		decision.Attempt.NewSession = decision.Attempt.Peer.Session != "" && marks&markNewSession != 0
	case Redirect:
		decision.Text = t.text(text, length, "")
	default:
		if size := t.word(wordTypeLength); size > 0 {
			decision.ContentType = t.text(t.word(wordType), size, "text/plain")
			decision.Text = t.text(text, length, "")
		}
		t.readUpstream(decision)
		decision.Busy = marks&markBusy != 0
	}
	if marks&markHashed != 0 && (decision.Action == Proxy || decision.Busy) {
		decision.Hash, decision.Hashed = t.word(wordHash), true
	}
	if size := t.word(wordSettingsLength); size > 0 {
		return t.readSettings(decision, t.word(wordSettings), size)
	}
	return nil
}

func (t *Table) readOrigin(decision *Decision) {
	at := t.word(wordShard)
	if at == 0 {
		return
	}
	image := t.in.bytes[at:]
	known := t.shards[at]
	if known == nil {
		known = readShard(image)
		t.shards[at] = known
	}
	decision.Shard, decision.HasShard = known.pattern, true
	switch decision.By {
	case ByNothing:
		return
	case ByRoute:
		decision.Rule = t.word(wordRoute)
	case ByGuard:
		decision.Rule = t.word(wordGuard)
	}
	decision.Origin = known.origin(image, decision.By, decision.Rule)
}

func (t *Table) readUpstream(decision *Decision) {
	if at := t.word(wordPeers); at != 0 {
		set := t.peerSet(at)
		decision.HasUpstream, decision.UpstreamKey, decision.Upstream = true, set.key, set.upstream
	}
}

// readPeer reads the peer that the last call picked.
func (t *Table) readPeer(attempt *Attempt) {
	set := t.peerSet(t.word(wordPeers))
	index := t.word(wordPeer)
	*attempt = Attempt{
		Peer: set.peers[index], Index: index, Position: t.word(wordPosition),
		token: t.token(set, index), counted: set.counted,
	}
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
	t.readPeer(&attempt)
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
