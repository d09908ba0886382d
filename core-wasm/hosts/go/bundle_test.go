package corehost

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// resealed is a copy with a change and a checksum that is right again.
func resealed(data []byte, change func([]byte)) []byte {
	copied := bytes.Clone(data)
	change(copied)
	binary.LittleEndian.PutUint32(copied[16:], crc32.ChecksumIEEE(copied[24:]))
	return copied
}

func codeOf(err error) Code {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func TestABundleTellsHowToTalkToItsUpstreams(t *testing.T) {
	bundle := readBundle(t, "site")
	upstream := bundle.Upstream("VirtualServer/default/shop/careful")
	if upstream == nil {
		t.Fatal("the upstream is missing")
	}
	transport := upstream.Transport
	if upstream.Display != "default/stable:80" || transport.TLS || transport.Protocol != "http" || *transport.ClientMaxBodySize != 64 {
		t.Errorf("wrong: %+v", upstream)
	}
	if len(transport.NextUpstream) != 3 || transport.ConnectTimeout != nil {
		t.Errorf("wrong transport: %+v", transport)
	}
}

func TestAWrongBundleIsRefusedWithTheReason(t *testing.T) {
	good := bundleBytes(t, "site")
	damaged := func(at int, value byte) []byte {
		copied := bytes.Clone(good)
		copied[at] = value
		return copied
	}
	cases := []struct {
		code Code
		data []byte
	}{
		{CodeTruncated, nil},
		{CodeTruncated, good[:23]},
		{CodeTruncated, good[:len(good)-1]},
		{CodeMagic, damaged(0, 'X')},
		{CodeVersion, damaged(4, 2)},
		{CodeChecksum, damaged(200, good[200]^1)},
		{CodeCorrupt, append(bytes.Clone(good), 0, 0, 0, 0)},
		{CodeCorrupt, damaged(20, 1)},
		{CodeCorrupt, damaged(8, good[8]+1)},
		{CodeCorrupt, damaged(8, good[8]-1)},
		{CodeCorrupt, resealed(good, func(data []byte) { data[31] = 0xff })},
		{CodeCorrupt, resealed(good, func(data []byte) { data[25] = 1 })},
		{CodeCorrupt, resealed(good, func(data []byte) { data[36] = 0xff })},
	}
	for i, c := range cases {
		if _, err := ReadBundle(c.data); codeOf(err) != c.code {
			t.Errorf("case %d: %v, not %s", i, err, c.code)
		}
	}
}

func TestNoHostileBundleDoesMoreThanBeRefused(t *testing.T) {
	good := bundleBytes(t, "site")
	core, err := CompileCore(context.Background(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close(context.Background())
	random := rand.New(rand.NewPCG(1, 2))
	refusals, taken := 0, 0
	var table *Table
	for range 1000 {
		data := resealed(good, func(data []byte) {
			for range 1 + random.IntN(4) {
				at := 24 + random.IntN(len(data)-24)
				if random.IntN(3) == 0 {
					at = 24 + random.IntN(256)
				}
				data[at] = byte(random.Uint32())
			}
		})
		bundle, err := ReadBundle(data)
		if err == nil {
			if table == nil {
				if table, err = core.NewTable(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			err = table.Load(bundle)
		}
		if err != nil {
			if codeOf(err) == "" {
				t.Fatalf("not refused, but failed: %v", err)
			}
			refusals++
			if table != nil {
				table.Close()
				table = nil
			}
			continue
		}
		taken++
		for _, target := range []string{"/cart", "/item/7", "/sticky", "/hello?name=x", "/empty"} {
			mustDecide(t, table, shopRequest(target))
		}
	}
	if refusals < 50 || taken == 0 {
		t.Errorf("%d refused, %d taken", refusals, taken)
	}
}

func FuzzReadBundle(f *testing.F) {
	f.Add(bundleBytes(f, "site"))
	f.Add([]byte("NJKB"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 24 {
			data = resealed(data, func(data []byte) { binary.LittleEndian.PutUint32(data[12:], uint32(len(data))) })
		}
		if _, err := ReadBundle(data); err != nil && codeOf(err) == "" {
			t.Fatal(err)
		}
	})
}
