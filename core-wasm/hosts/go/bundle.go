package corehost

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

// Kinds of records in a bundle.
const (
	kindShard    = 1
	kindPeerSet  = 2
	kindUpstream = 3
)

const (
	bundleMagic  = "NJKB"
	bundleMajor  = 1
	bundleHeader = 24
	recordHeader = 12
)

// Upstream is what a host has to know of an upstream to talk to its peers.
type Upstream struct {
	// Identity of the upstream.
	Key string `json:"key"`
	// namespace/service:port, for people.
	Display       string         `json:"display"`
	Transport     Transport      `json:"transport"`
	SessionCookie *SessionCookie `json:"sessionCookie"`
}

// Transport says how to talk to peers. Times are in milliseconds; what is nil has the default of the host.
type Transport struct {
	TLS bool `json:"tls"`
	// "http" or "grpc".
	Protocol       string `json:"protocol"`
	ConnectTimeout *int64 `json:"connectTimeout"`
	ReadTimeout    *int64 `json:"readTimeout"`
	SendTimeout    *int64 `json:"sendTimeout"`
	// When another peer is tried: "error", "timeout", "http_502", "http_503", "http_504", "non_idempotent". Empty but not nil: never.
	NextUpstream []string `json:"nextUpstream"`
	// 0: no limit.
	NextUpstreamTries   *int64 `json:"nextUpstreamTries"`
	NextUpstreamTimeout *int64 `json:"nextUpstreamTimeout"`
	// Bytes; 0: no limit.
	ClientMaxBodySize *int64 `json:"clientMaxBodySize"`
	Buffering         *bool  `json:"buffering"`
	Keepalive         *int64 `json:"keepalive"`
}

// SessionCookie has the attributes of the cookie that keeps a client with its peer.
type SessionCookie struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Domain string `json:"domain"`
	// Milliseconds, or the text "max"; absent: until the browser ends.
	Expires  json.RawMessage `json:"expires"`
	HTTPOnly bool            `json:"httpOnly"`
	Secure   bool            `json:"secure"`
	SameSite string          `json:"sameSite"`
}

// recordKey names a record of a bundle.
type recordKey struct {
	kind byte
	key  string
}

// Bundle is a configuration as "njet-kic compile" writes it: the images of all shards and peer sets, and what a host has to know
// of each upstream. It is not changed after [ReadBundle].
type Bundle struct {
	// Images by kind and key, and the same keys in the order of the file.
	images    map[recordKey][]byte
	order     []recordKey
	upstreams map[string]*Upstream
	// Whether any upstream has limits that depend on the time.
	timed bool
}

// Upstream describes an upstream; nil for a key that is not known.
func (b *Bundle) Upstream(key string) *Upstream { return b.upstreams[key] }

// Counts are the numbers of host patterns and upstreams.
func (b *Bundle) Counts() (hosts, upstreams int) {
	for _, name := range b.order {
		if name.kind == kindShard {
			hosts++
		}
	}
	return hosts, len(b.order) - hosts
}

// ReadBundle reads a bundle, of which it keeps parts: data must not be changed afterwards. It refuses, with an [*Error], bytes
// that are not exactly a bundle. Whether the images are sound is for the core to say, when a [Table] or [Router] loads them.
func ReadBundle(data []byte) (*Bundle, error) {
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	if len(data) < bundleHeader {
		return nil, refused(CodeTruncated, "shorter than its header")
	}
	if string(data[:4]) != bundleMagic {
		return nil, refused(CodeMagic, "these bytes are no bundle")
	}
	if major := binary.LittleEndian.Uint16(data[4:]); major != bundleMajor {
		return nil, refused(CodeVersion, "format version %d, this reader knows %d", major, bundleMajor)
	}
	size := uint64(word(12))
	if size > uint64(len(data)) {
		return nil, refused(CodeTruncated, "%d of %d bytes", len(data), size)
	}
	if size != uint64(len(data)) || word(20) != 0 {
		return nil, refused(CodeCorrupt, "a wrong header, or bytes after its end")
	}
	if crc32.ChecksumIEEE(data[bundleHeader:]) != word(16) {
		return nil, refused(CodeChecksum, "its bytes do not fit its checksum")
	}
	bundle := &Bundle{images: map[recordKey][]byte{}, upstreams: map[string]*Upstream{}}
	var before recordKey
	rest := data[bundleHeader:]
	for i := uint32(0); i < word(8); i++ {
		name, content, after, err := nextRecord(rest, i)
		if err != nil {
			return nil, err
		}
		if i > 0 && !less(before, name) {
			return nil, refused(CodeCorrupt, "record %d is not in order", i)
		}
		before, rest = name, after
		if err := bundle.add(name, content); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 {
		return nil, refused(CodeCorrupt, "bytes after the last record")
	}
	return bundle, nil
}

func less(a, b recordKey) bool { return a.kind < b.kind || a.kind == b.kind && a.key < b.key }

// nextRecord reads the record that data begins with.
func nextRecord(data []byte, number uint32) (name recordKey, content, rest []byte, err error) {
	wrong := func(why string) (recordKey, []byte, []byte, error) {
		return recordKey{}, nil, nil, refused(CodeCorrupt, "record %d %s", number, why)
	}
	if len(data) < recordHeader {
		return wrong("begins after the end")
	}
	if data[0] == 0 || data[1]|data[2]|data[3] != 0 {
		return wrong("has no kind")
	}
	keyLength := binary.LittleEndian.Uint32(data[4:])
	contentLength := binary.LittleEndian.Uint32(data[8:])
	kind := data[0]
	key, data, ok := padded(data[recordHeader:], keyLength)
	if !ok {
		return wrong("has a wrong key length or padding")
	}
	if !utf8.Valid(key) {
		return wrong("has a key that is not UTF-8")
	}
	content, data, ok = padded(data, contentLength)
	if !ok {
		return wrong("has a wrong content length or padding")
	}
	return recordKey{kind, string(key)}, content, data, nil
}

// padded splits off so many bytes and the zeros that pad them to a multiple of four.
func padded(data []byte, length uint32) (part, rest []byte, ok bool) {
	end := (uint64(length) + 3) &^ 3
	if end > uint64(len(data)) {
		return nil, nil, false
	}
	for _, zero := range data[length:end] {
		if zero != 0 {
			return nil, nil, false
		}
	}
	return data[:length:length], data[end:], true
}

// add takes a record in. Kinds that are not known are passed over.
func (b *Bundle) add(name recordKey, content []byte) error {
	switch name.kind {
	case kindShard, kindPeerSet:
		if own, ok := imageKey(name.kind, content); !ok || own != name.key {
			return refused(CodeCorrupt, "the image of %q is another one, or none", name.key)
		}
		if name.kind == kindPeerSet {
			failures, slowStart := binary.LittleEndian.Uint32(content[80:]), binary.LittleEndian.Uint32(content[92:])
			b.timed = b.timed || failures|slowStart != 0
		}
		b.images[name] = content
		b.order = append(b.order, name)
	case kindUpstream:
		upstream := &Upstream{}
		if !bytes.HasPrefix(content, []byte("{")) || json.Unmarshal(content, upstream) != nil || upstream.Key != name.key {
			return refused(CodeCorrupt, "the upstream %q has no description", name.key)
		}
		b.upstreams[name.key] = upstream
	}
	return nil
}

// imageKey is what an image says of itself: its host pattern, or the key of its upstream. The core would otherwise put it in
// the place of another record. The image need not be sound.
func imageKey(kind byte, image []byte) (string, bool) {
	text := func(start, length uint32) (string, bool) {
		end := uint64(start) + uint64(length)
		if end > uint64(len(image)) {
			return "", false
		}
		return string(image[start:end]), true
	}
	if len(image) < imageHeader {
		return "", false
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(image[at:]) }
	if kind == kindPeerSet {
		return text(word(64), word(68))
	}
	host, ok := text(imageHeader, word(20))
	return patternText(word(24), host), ok
}

// patternText is a host pattern as bundles spell it; number and host as images have them.
func patternText(pattern uint32, host string) string {
	switch pattern {
	case 0:
		return host
	case 1:
		return "*." + host
	case 2:
		return "**." + host
	case 3:
		return ""
	default:
		return "(default)"
	}
}

// patternParts is number and host of a host pattern, of a text that [patternText] gave.
func patternParts(image []byte) (pattern uint32, host []byte) {
	length := binary.LittleEndian.Uint32(image[20:])
	return binary.LittleEndian.Uint32(image[24:]), image[imageHeader : imageHeader+length]
}

func refused(code Code, format string, values ...any) error {
	return &Error{code, "reading a bundle: " + fmt.Sprintf(format, values...)}
}
