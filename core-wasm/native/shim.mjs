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
  int32_t result = (int32_t)Z_${MODULE}Z_${name}(${["&instance->core", ...parameters].join(", ")});
  instance->bytes = instance->core.w2c_memory.data;
  return result;
}
`;
}

/** The C file, which is compiled together with what wasm2c wrote and with wabt's runtime. */
export function shim(functions) {
  const declarations = functions.map(declaration);
  return `#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "wasm-rt-impl.h"

#if WABT_BIG_ENDIAN
#error "memory is stored backwards on big-endian machines: hosts could not read it"
#endif

#define PUBLIC __attribute__((visibility("default")))
/* No status, and no address: memory never reaches so far. */
#define NJK_TRAPPED (-128)
/* One page less than there could be: the size of the memory is kept in 32 bits. */
#define MOST_PAGES 65535u

/* What a host sees of an instance are the first two fields. The address of the memory is right after every call. */
typedef struct {
  union {
    uint8_t *bytes;
    uint32_t *words;
  };
  int32_t trap;
  ${INSTANCE} core;
} njk_instance;

static int32_t njk_broken(njk_instance *instance, wasm_rt_trap_t trap) {
  instance->trap = (int32_t)trap;
  return NJK_TRAPPED;
}

/* A new instance whose memory may grow up to so many pages of 64 KiB; a null pointer if memory is short. */
PUBLIC njk_instance *njk_new(uint32_t most_pages) {
  njk_instance *instance = calloc(1, sizeof *instance);
  if (!instance) return NULL;
  if (wasm_rt_impl_try() != WASM_RT_TRAP_NONE) {
    free(instance);
    return NULL;
  }
  wasm_rt_init();
  Z_${MODULE}_init_module();
  Z_${MODULE}_instantiate(&instance->core);
  wasm_rt_memory_t *memory = &instance->core.w2c_memory;
  if (most_pages > MOST_PAGES) most_pages = MOST_PAGES;
  if (memory->max_pages > most_pages) memory->max_pages = most_pages;
  instance->bytes = memory->data;
  return instance;
}

PUBLIC void njk_delete(njk_instance *instance) {
  if (!instance) return;
  Z_${MODULE}_free(&instance->core);
  free(instance);
}

/* Bytes of the memory of an instance. */
PUBLIC uint32_t njk_memory_size(const njk_instance *instance) {
  return instance->core.w2c_memory.size;
}

/* What the trap with this number is called. */
PUBLIC const char *njk_trap_text(int32_t trap) {
  return wasm_rt_strerror((wasm_rt_trap_t)trap);
}

/* A header of a request, as it stands in the memory of a proxy: ngx_http_lua_ffi_table_elt_t. */
typedef struct {
  int32_t length;
  const uint8_t *bytes;
} njk_text;

typedef struct {
  njk_text name, value;
} njk_header;

/* The place of the header with this name, which is compared byte by byte; -1 for none, -2 for more than one. It is no part of the
   core, but stands here because LuaJIT takes no loop into the trace of a phase, and leaves a phase that begins one to its
   interpreter. */
PUBLIC int32_t njk_find_header(const njk_header *headers, int32_t count, const char *name, int32_t length) {
  int32_t found = -1;
  for (int32_t i = 0; i < count; i++) {
    if (headers[i].name.length != length || memcmp(headers[i].name.bytes, name, (size_t)length) != 0) continue;
    if (found >= 0) return -2;
    found = i;
  }
  return found;
}

static double njk_digits(const uint8_t *text, size_t length, size_t *at) {
  double number = 0;
  for (; *at < length && text[*at] >= '0' && text[*at] <= '9'; ++*at) number = number * 10 + (text[*at] - '0');
  return number;
}

/* The number that a text begins with: digits, and a point with more of them. No sign, no exponent; 0 for none. It stands here for the
   same reason. */
PUBLIC double njk_decimal(const uint8_t *text, size_t length) {
  size_t at = 0;
  double whole = njk_digits(text, length, &at);
  if (at == length || text[at] != '.') return whole;
  size_t point = ++at;
  double part = njk_digits(text, length, &at), scale = 1;
  for (; point < at; point++) scale *= 10;
  return whole + part / scale;
}

/* Declarations of the functions below, for FFIs that read C. */
PUBLIC const char *njk_declarations(void) {
  return ${declarations.map((line) => `\n    ${JSON.stringify(`${line}\n`)}`).join("")};
}
${functions.map(guarded).join("")}`;
}
