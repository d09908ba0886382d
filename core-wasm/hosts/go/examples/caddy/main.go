package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	// What serves HTTP, and nothing else of the standard modules: they take minutes to compile.
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func main() { caddycmd.Main() }
