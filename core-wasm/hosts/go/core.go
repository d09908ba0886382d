package corehost

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Core is compiled core.wasm, of which tables are made. It may be used by any number of goroutines.
type Core struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// CompileCore compiles the core; wasm is core.wasm, or nil for the one that comes with this module. maxMemory bounds the memory of
// each table in bytes; 0: 4 GiB. Close ends it with all of its tables.
func CompileCore(ctx context.Context, wasm []byte, maxMemory uint64) (*Core, error) {
	if wasm == nil {
		wasm = embeddedCore
	}
	// A decision is never interrupted: it takes microseconds, and a core that is stopped half-way is lost.
	config := wazero.NewRuntimeConfig()
	if pages := maxMemory / 65536; pages > 0 && pages < 65536 {
		config = config.WithMemoryLimitPages(uint32(pages))
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	module, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		_ = runtime.Close(ctx)
		return nil, fmt.Errorf("compiling the core: %w", err)
	}
	return &Core{runtime, module}, nil
}

// Close frees everything. No table of the core may be in use.
func (c *Core) Close(ctx context.Context) error { return c.runtime.Close(ctx) }

// export is a function of an instance with room for its arguments and result.
type export struct {
	function api.Function
	stack    []uint64
}

// instance is one instance of the core, for one goroutine at a time. Its exports answer signed numbers; after a trap all of
// them answer the same error.
type instance struct {
	module api.Module
	memory api.Memory
	// View of the memory, to be renewed after a call that may have made it grow.
	bytes []byte
	trap  *TrapError

	alloc, free, memoryUsed                   export
	tableNew, contextNew                      export
	shardLoad, shardRemove                    export
	peersLoad, peersRemove, peersFind         export
	route, resume, renderSetting              export
	peerPick, peerDone, peerState, peerStatus export
	releaseDecision                           export
	healthNew, healthSet, healthState         export
	healthReport                              export
}

// newInstance makes an instance, and checks that it speaks the interface of this package.
func (c *Core) newInstance(ctx context.Context) (*instance, error) {
	module, err := c.runtime.InstantiateModule(ctx, c.module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, fmt.Errorf("making an instance of the core: %w", err)
	}
	in := &instance{module: module, memory: module.Memory()}
	version := export{}
	exports := map[string]*export{
		"abi_version": &version, "alloc": &in.alloc, "free": &in.free, "memory_used": &in.memoryUsed,
		"table_new": &in.tableNew, "context_new": &in.contextNew,
		"shard_load": &in.shardLoad, "shard_remove": &in.shardRemove,
		"peers_load": &in.peersLoad, "peers_remove": &in.peersRemove, "peers_find": &in.peersFind,
		"route": &in.route, "resume": &in.resume, "render_setting": &in.renderSetting,
		"peer_pick": &in.peerPick, "peer_done": &in.peerDone, "peer_state": &in.peerState, "peer_status": &in.peerStatus,
		"release_decision": &in.releaseDecision,
		"health_new":       &in.healthNew, "health_set": &in.healthSet, "health_state": &in.healthState,
		"health_report": &in.healthReport,
	}
	missing := in.memory == nil
	for name, export := range exports {
		function := module.ExportedFunction(name)
		if function == nil {
			missing = true
			continue
		}
		definition := function.Definition()
		size := max(len(definition.ParamTypes()), len(definition.ResultTypes()), 1)
		*export = newExport(function, size)
	}
	number := int32(0)
	if version.function != nil && !missing {
		number, err = in.call(&version)
	}
	if err != nil || missing || number>>8 != abiMajor || number&255 < abiMinor {
		_ = module.Close(ctx)
		return nil, &Error{CodeABIVersion, fmt.Sprintf("the module speaks interface %d.%d, this package %d.%d or later %d.x",
			number>>8, number&255, abiMajor, abiMinor, abiMajor)}
	}
	in.renew()
	return in, nil
}

func newExport(function api.Function, size int) export { return export{function, make([]uint64, size)} }

func (in *instance) close() { _ = in.module.Close(context.Background()) }

// call calls an export. The context of a request is not handed on: see CompileCore.
func (in *instance) call(e *export, arguments ...uint32) (int32, error) {
	if in.trap != nil {
		return 0, in.trap
	}
	for i, argument := range arguments {
		e.stack[i] = uint64(argument)
	}
	if err := e.function.CallWithStack(context.Background(), e.stack); err != nil {
		in.trap = &TrapError{err}
		return 0, in.trap
	}
	return int32(uint32(e.stack[0])), nil
}

// renew takes the view of the memory anew.
func (in *instance) renew() {
	if size := in.memory.Size(); uint32(len(in.bytes)) != size {
		in.bytes, _ = in.memory.Read(0, size)
	}
}

func (in *instance) word(at uint32) uint32 { return binary.LittleEndian.Uint32(in.bytes[at:]) }

func (in *instance) setWord(at, value uint32) { binary.LittleEndian.PutUint32(in.bytes[at:], value) }

// view is bytes of the memory, until the core writes over them or the memory grows.
func (in *instance) view(at, length uint32) []byte { return in.bytes[at : at+length] }

// allocate gives a block of the memory, which the caller frees.
func (in *instance) allocate(size int) (uint32, error) {
	at, err := in.call(&in.alloc, uint32(size))
	if err != nil {
		return 0, err
	}
	in.renew()
	if at == 0 {
		return 0, statusError(-9, "allocating memory")
	}
	return uint32(at), nil
}

func (in *instance) release(at uint32) { _, _ = in.call(&in.free, at) }

// placed calls use with the address of a copy of data.
func (in *instance) placed(data []byte, use func(at, length uint32) (int32, error)) (int32, error) {
	at, err := in.allocate(max(1, len(data)))
	if err != nil {
		return 0, err
	}
	copy(in.bytes[at:], data)
	status, err := use(at, uint32(len(data)))
	in.release(at)
	in.renew()
	return status, err
}
