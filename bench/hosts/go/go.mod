module njet.org/kic/bench-hosts

go 1.25.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	njet.org/kic/corehost v0.0.0
)

require (
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/sys v0.44.0 // indirect
)

replace njet.org/kic/corehost => ../../../core-wasm/hosts/go
