// Package corehost decides where HTTP requests go, by core.wasm: hosts, paths, conditions, splits, rewrites, redirects,
// header changes, and which peer of an upstream gets the request. It runs the core in wazero, without cgo.
//
// What it decides by is a bundle, which "njet-kic compile" makes of Kubernetes objects. A [Router] holds the bundle that is in
// force, may be used by any number of goroutines, and takes a new bundle while requests are decided:
//
//	router, err := corehost.NewRouter(ctx, corehost.Options{})
//	...
//	err = router.LoadFile(ctx, "site.njkb")
//	...
//	var decision corehost.Decision
//	err = router.Decide(ctx, &corehost.Request{Host: "shop.example.com", Target: "/cart?item=1"}, &decision)
//	switch decision.Action {
//	case corehost.Proxy:
//		// Send decision.Text to decision.Attempt.Peer, then:
//		decision.Attempt.Done(failed)
//	case corehost.Redirect, corehost.Return:
//		// Answer with decision.Status.
//	}
//
// Package httpproxy is an http.Handler and reverse proxy over it. A [Table] is the core for a single goroutine, without a pool.
package corehost
