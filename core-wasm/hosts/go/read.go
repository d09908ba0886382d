package corehost

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const (
	// Bytes of the header of an image of either kind.
	imageHeader   = 96
	settingHeader = 8
	peerRecord    = 32
)

// Flags of a peer set.
const (
	setBounded = 1
	setSticky  = 8
)

// peerSet is what a table keeps of the peer set whose image stands at an address.
type peerSet struct {
	key      string
	upstream *Upstream
	peers    []*Peer
	indexes  map[string]uint32
	// Whether the core counts requests under way or failures of its peers, so that the end of each has to be told.
	counted bool
	// Address of the tokens of the peers.
	tokens uint32
}

// readPeerSet reads a peer set from its image.
func readPeerSet(image []byte) *peerSet {
	word := func(at uint32) uint32 { return binary.LittleEndian.Uint32(image[at:]) }
	method, flags := image[20], binary.LittleEndian.Uint16(image[22:])
	limits := word(80) | word(88)
	set := &peerSet{
		key:     string(image[word(64) : word(64)+word(68)]),
		counted: method == 4 || method == 6 || flags&setBounded != 0 || limits != 0,
		indexes: map[string]uint32{},
	}
	for i := range word(24) {
		record := image[imageHeader+i*peerRecord:]
		start := binary.LittleEndian.Uint32(record)
		id := string(image[start : start+uint32(record[8])])
		address := strings.TrimPrefix(id, "[")[:record[9]]
		peer := &Peer{
			ID: id, Address: address,
			Port: binary.LittleEndian.Uint16(record[4:]), Weight: binary.LittleEndian.Uint16(record[6:]),
			Draining: record[11]&1 != 0,
		}
		if flags&setSticky != 0 {
			peer.Session = fmt.Sprintf("%08x", binary.LittleEndian.Uint32(record[12:]))
		}
		set.peers = append(set.peers, peer)
		set.indexes[id] = i
	}
	return set
}

// shard is the rules of a host pattern, as what they are called is read from the bundle.
type shard struct {
	pattern string
	image   []byte
}

const noResource = 0xffffffff

// ruleNames reads owner and path of a rule from the names of an image, which may be left out.
func ruleNames(image []byte, by By, rule uint32) (resource, path string) {
	word := func(at uint32) uint32 { return binary.LittleEndian.Uint32(image[at:]) }
	text := func(at uint32) string { return string(image[word(at) : word(at)+word(at+4)]) }
	names, routes, guards := word(72), word(32), word(48)
	if names == 0 {
		return "", ""
	}
	owner := func(index uint32) string {
		if index == noResource {
			return ""
		}
		return text(names + 4 + index*8)
	}
	first := names + 4 + word(names)*8
	switch {
	case by == ByRoute && rule < routes:
		at := first + rule*12
		return owner(word(at)), text(at + 4)
	case by == ByGuard && rule < guards:
		return owner(word(first + routes*12 + rule*4)), ""
	case by == ByUnmatched:
		return owner(word(first + routes*12 + guards*4)), ""
	}
	return "", ""
}

// errorPage reads a page from its setting, whose name is "STATUS CODES [TYPE]".
func errorPage(setting Setting) (ErrorPage, bool) {
	fields := strings.SplitN(setting.Name, " ", 3)
	if len(fields) < 2 {
		return ErrorPage{}, false
	}
	page := ErrorPage{Redirect: setting.Tag == tagErrorRedirect}
	var err error
	if page.Status, err = strconv.Atoi(fields[0]); err != nil || page.Status != 0 && (page.Status < 100 || page.Status > 999) {
		return ErrorPage{}, false
	}
	for _, text := range strings.Split(fields[1], ",") {
		code, err := strconv.Atoi(text)
		if err != nil || code < 100 || code > 999 {
			return ErrorPage{}, false
		}
		page.Codes = append(page.Codes, code)
	}
	if page.Redirect {
		page.Location = setting.Value
		return page, page.Status != 0
	}
	page.Body = setting.Value
	if len(fields) == 3 {
		page.ContentType = fields[2]
	}
	return page, true
}

// rendered says whether settings of a tag have a value.
func rendered(tag uint16) bool {
	switch tag {
	case uint16(SetRequest), uint16(AddResponse), tagErrorReturn, tagErrorRedirect, tagErrorHeader:
		return true
	}
	return false
}
