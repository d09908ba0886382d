package corehost

import (
	"errors"
	"strings"
	"testing"
)

func TestATableDecides(t *testing.T) {
	table := newTestTable(t, "site")
	cases := []struct {
		target, cookie    string
		action            Action
		status            int
		text, upstreamKey string
	}{
		{"/cart?item=1", "", Proxy, 0, "/cart?item=1", "VirtualServer/default/shop/stable"},
		{"/cart", "a=b; beta=yes", Proxy, 0, "/cart", "VirtualServer/default/shop/beta"},
		{"/item/42", "", Proxy, 0, "/things/42", "VirtualServer/default/shop/stable"},
		{"/old?x", "", Redirect, 301, "https://shop.example.com/old?x", ""},
		{"/hello?name=%41", "", Return, 200, "hello %41", ""},
		{"/empty", "", Return, 503, "", "VirtualServer/default/shop/empty"},
		{"/../x", "", Return, 400, "", ""},
		{"/none", "", Return, 404, "", ""},
	}
	for _, c := range cases {
		request := shopRequest(c.target)
		if c.cookie != "" {
			request.Headers = headerMap{"cookie": c.cookie}
		}
		d := mustDecide(t, table, request)
		if d.Action != c.action || d.Status != c.status || d.Text != c.text || d.UpstreamKey != c.upstreamKey {
			t.Errorf("%s: %v %d %q %q", c.target, d.Action, d.Status, d.Text, d.UpstreamKey)
		}
	}
}

func TestADecisionNamesTheRuleThatMadeIt(t *testing.T) {
	table := newTestTable(t, "site")
	d := mustDecide(t, table, shopRequest("/item/42"))
	origin, _ := d.Origin()
	if origin != (Origin{"VirtualServer/default/shop", "shop.example.com", "~ ^/item/([0-9]+)$"}) {
		t.Errorf("wrong origin: %+v", origin)
	}
	d = mustDecide(t, table, &Request{Host: "x.example.com", Target: "/y"})
	origin, _ = d.Origin()
	shard, _ := d.Shard()
	if origin.Resource != "Ingress/default/wild" || shard != "*.example.com" {
		t.Errorf("wrong origin: %+v %q", origin, shard)
	}
	d = mustDecide(t, table, &Request{Host: "elsewhere.test", Target: "/"})
	if _, found := d.Origin(); found {
		t.Error("nothing decided, and yet there is an origin")
	}
}

func TestHeaderChangesAndErrorPagesComeWithTheirValues(t *testing.T) {
	table := newTestTable(t, "site")
	d := mustDecide(t, table, shopRequest("/item/42"))
	headers := d.Headers()
	want := []HeaderChange{
		{SetRequest, "X-From", "shop.example.com", false},
		{SetRequest, "X-Secret", "", false},
		{AddResponse, "X-Served", "njet", true},
		{AddResponse, "X-Fine", "yes", false},
		{HideResponse, "X-Internal", "", false},
		{PassResponse, "Server", "", false},
	}
	for _, change := range want {
		found := false
		for _, header := range headers {
			found = found || header == change
		}
		if !found || len(headers) != len(want) {
			t.Errorf("%+v is not in %+v", change, headers)
		}
	}
	d = mustDecide(t, table, shopRequest("/empty"))
	pages := d.ErrorPages()
	if len(pages) != 1 || pages[0].Status != 200 || pages[0].Body != "closed: /empty" || len(pages[0].Headers) != 1 {
		t.Errorf("wrong pages: %+v", pages)
	}
}

func TestAKeyAlwaysLeadsToItsPeer(t *testing.T) {
	table := newTestTable(t, "site")
	owners := map[string]bool{}
	for _, user := range strings.Split("amy bob carl dora erin frank gina hal", " ") {
		first := mustDecide(t, table, shopRequest("/hashed?user="+user))
		again := mustDecide(t, table, shopRequest("/hashed?user="+user))
		if !first.Hashed || first.Hash != again.Hash || first.Attempt.Peer.ID != again.Attempt.Peer.ID {
			t.Errorf("%s: %v then %v", user, first.Attempt.Peer, again.Attempt.Peer)
		}
		owners[first.Attempt.Peer.ID] = true
	}
	if len(owners) < 2 {
		t.Errorf("all keys have one owner: %v", owners)
	}
}

func TestARetryMeetsNoPeerTwiceAndEnds(t *testing.T) {
	table := newTestTable(t, "site")
	d := mustDecide(t, table, shopRequest("/cart"))
	tried := []*Peer{d.Attempt.Peer}
	seen := map[string]bool{d.Attempt.Peer.ID: true}
	for range 2 {
		attempt, err := table.Pick(d.UpstreamKey, nil, tried, 0, 0)
		if err != nil || seen[attempt.Peer.ID] {
			t.Fatalf("%v, %v", attempt.Peer, err)
		}
		seen[attempt.Peer.ID] = true
		tried = append(tried, attempt.Peer)
	}
	if _, err := table.Pick(d.UpstreamKey, nil, tried, 0, 0); !errors.Is(err, ErrNoPeer) {
		t.Errorf("%v, not ErrNoPeer", err)
	}
	if _, err := table.Pick("unknown", nil, nil, 0, 0); !errors.Is(err, ErrNoPeer) {
		t.Errorf("%v, not ErrNoPeer", err)
	}
}

func TestALongRequestIsAnsweredWith414(t *testing.T) {
	table := newTestTable(t, "site")
	d := mustDecide(t, table, shopRequest("/"+strings.Repeat("x", 70_000)))
	if d.Action != Return || d.Status != 414 {
		t.Errorf("%v %d", d.Action, d.Status)
	}
}

func TestHeadersOfAnySizeReachTheCore(t *testing.T) {
	table := newTestTable(t, "site")
	request := shopRequest("/cart")
	for range 3 {
		request.Headers = headerMap{"cookie": strings.Repeat("x=y; ", 20_000) + "beta=yes"}
		if d := mustDecide(t, table, request); d.UpstreamKey != "VirtualServer/default/shop/beta" {
			t.Errorf("%q", d.UpstreamKey)
		}
	}
}

func TestMemoryStaysFlatOverChangesOfTheBundle(t *testing.T) {
	table := newTestTable(t, "site")
	bundles := []*Bundle{readBundle(t, "later"), readBundle(t, "site")}
	change := func() {
		for _, bundle := range bundles {
			if err := table.Load(bundle); err != nil {
				t.Fatal(err)
			}
			mustDecide(t, table, shopRequest("/cart"))
		}
	}
	change()
	before := table.MemoryUsed()
	for range 60 {
		change()
	}
	if after := table.MemoryUsed(); after > before {
		t.Errorf("%d bytes in use, %d before", after, before)
	}
}
