package corehost_test

import (
	"context"
	"fmt"
	"log"

	"njet.org/kic/corehost"
)

type cookies string

func (c cookies) HeaderValue(name string) (string, bool) { return string(c), name == "cookie" }

func Example() {
	ctx := context.Background()
	router, err := corehost.NewRouter(ctx, corehost.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer router.Close(ctx)
	if err := router.LoadFile(ctx, "testdata/site.njkb"); err != nil {
		log.Fatal(err)
	}

	var decision corehost.Decision
	request := corehost.Request{Host: "shop.example.com", Target: "/cart?item=1", Method: "GET", Headers: cookies("beta=yes")}
	if err := router.Decide(ctx, &request, &decision); err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Action, decision.Upstream.Display, decision.Attempt.Peer.ID, decision.Text)
	// When the peer has answered, or failed:
	decision.Attempt.Done(false)

	request = corehost.Request{Host: "shop.example.com", Target: "/old", Method: "GET"}
	if err := router.Decide(ctx, &request, &decision); err != nil {
		log.Fatal(err)
	}
	origin, _ := decision.Origin()
	fmt.Println(decision.Action, decision.Status, decision.Text, origin.Resource)
	// Output:
	// proxy default/beta:80 10.0.1.1:8080 /cart?item=1
	// redirect 301 https://shop.example.com/old VirtualServer/default/shop
}
