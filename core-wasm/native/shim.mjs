// Writes the C that stands between a host program and what wasm2c made of a module: each export behind a guard, so that a
// trap ends a call and not the process. It is made from the exports that wasm2c declared, so it can't drift from the module.

/** Module name that wasm2c is given; its C names begin with it. */
export const MODULE = "njet_kic_core";

const INSTANCE = `Z_${MODULE}_instance_t`;
const FUNCTION = new RegExp(`^u32 Z_${MODULE}Z_(\\w+)\\(${INSTANCE}\\*((?:, u32)*)\\);$`, "gm");
const NAME = /^[a-z][a-z0-9_]*$/;

/**
 * The functions that the header declares: name and number of arguments, all of them 32-bit integers. Throws where the module
 * has a function export that is not among them, or has no memory.
 */
export function functionsOf(header, wasm) {
  const found = new Map(
    [...header.matchAll(FUNCTION)].map(([, name, args]) => [name, { name, args: args.split(",").length - 1 }]),
  );
  const exports = WebAssembly.Module.exports(new WebAssembly.Module(wasm));
  if (!exports.some(({ name, kind }) => name === "memory" && kind === "memory"))
    throw new Error("no memory is exported");
  return exports
    .filter(({ kind }) => kind === "function")
    .map(({ name }) => {
      const known = NAME.test(name) && found.get(name);
      if (!known) throw new Error(`the export ${name} is not one of 32-bit integers with a plain name`);
      return known;
    });
}

/** C declarations of the functions, as the library tells them to LuaJIT's FFI. */
function declaration({ name, args }) {
  return `int32_t njk_${name}(njk_instance *${", uint32_t".repeat(args)});`;
}

function guarded({ name, args }) {
  const parameters = Array.from({ length: args }, (_, i) => `a${i}`);
  return `
PUBLIC int32_t njk_${name}(njk_instance *instance${parameters.map((p) => `, uint32_t ${p}`).join("")}) {
  if (instance->trap) return NJK_TRAPPED;
  wasm_rt_trap_t trap = wasm_rt_impl_try();
  if (trap != WASM_RT_TRAP_NONE) return njk_broken(instance, trap);
  ${INSTANCE} *core = &((njk_whole *)instance)->core;
  int32_t result = (int32_t)Z_${MODULE}Z_${name}(${["core", ...parameters].join(", ")});
  instance->bytes = core->w2c_memory.data;
  return result;
}
`;
}

/** The C file, which is compiled together with what wasm2c wrote and with wabt's runtime. */
export function shim(functions) {
  const declarations = functions.map(declaration);
  return `#include <stdint.h>
#include <stdlib.h>

#include "core.h"
#include "instance.h"
#include "wasm-rt-impl.h"

#if WABT_BIG_ENDIAN
#error "memory is stored backwards on big-endian machines: hosts could not read it"
#endif

/* One page less than there could be: the size of the memory is kept in 32 bits. */
#define MOST_PAGES 65535u

typedef struct {
  njk_instance seen;
  ${INSTANCE} core;
} njk_whole;

static int32_t njk_broken(njk_instance *instance, wasm_rt_trap_t trap) {
  instance->trap = (int32_t)trap;
  return NJK_TRAPPED;
}

/* A new instance whose memory may grow up to so many pages of 64 KiB; a null pointer if memory is short. */
PUBLIC njk_instance *njk_new(uint32_t most_pages) {
  njk_whole *whole = calloc(1, sizeof *whole);
  if (!whole) return NULL;
  if (wasm_rt_impl_try() != WASM_RT_TRAP_NONE) {
    free(whole);
    return NULL;
  }
  wasm_rt_init();
  Z_${MODULE}_init_module();
  Z_${MODULE}_instantiate(&whole->core);
  wasm_rt_memory_t *memory = &whole->core.w2c_memory;
  if (most_pages > MOST_PAGES) most_pages = MOST_PAGES;
  if (memory->max_pages > most_pages) memory->max_pages = most_pages;
  whole->seen.bytes = memory->data;
  return &whole->seen;
}

PUBLIC void njk_delete(njk_instance *instance) {
  if (!instance) return;
  Z_${MODULE}_free(&((njk_whole *)instance)->core);
  free(instance);
}

/* Bytes of the memory of an instance. */
PUBLIC uint32_t njk_memory_size(const njk_instance *instance) {
  return ((const njk_whole *)instance)->core.w2c_memory.size;
}

/* What the trap with this number is called. */
PUBLIC const char *njk_trap_text(int32_t trap) {
  return wasm_rt_strerror((wasm_rt_trap_t)trap);
}

/* Declarations of the functions below, for FFIs that read C. */
PUBLIC const char *njk_declarations(void) {
  return ${declarations.map((line) => `\n    ${JSON.stringify(`${line}\n`)}`).join("")};
}
${functions.map(guarded).join("")}`;
}
