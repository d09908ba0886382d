-- The core as native code: loads the library that `npm run build:native` makes, and gives instances of it.
--
--   native.load(path)           -> library, or nil and what is wrong. A library stays loaded as long as the Lua VM.
--   library.functions           the exports of the core, as C functions: `njk_route(instance, context, ...)` and so on, as
--                               core-wasm/ABI.md describes them, with an instance before their arguments. Arguments are
--                               unsigned, results signed 32-bit integers. TRAPPED is answered for a call that trapped, and
--                               for every later call of that instance.
--   library.new_instance(pages) -> an instance with at most so many pages of memory (64 KiB each), or nil and what is wrong.
--                               It is freed by the garbage collector.
--   library.functions.njk_decide, njk_find_headers, ...  what is no export of the core but C beside it, see core-wasm/native/*.c
--   instance.bytes, instance.words   the memory; to be read anew after every call, since it moves when it grows.
--   instance.trap               0, or the number of the trap that ended the instance.
--
-- An instance belongs to one worker, and a call never yields.

local ffi = require "ffi"

local ABI_MAJOR = 1
-- The library takes a page less than there could be, where more is asked for.
local MOST_PAGES = 65536

local _M = { TRAPPED = -128 }

-- A VM that runs without a cache of Lua code comes here again, and the types are there already.
if not pcall(ffi.typeof, "njk_instance") then
  ffi.cdef [[
    typedef struct {
      union { uint8_t *bytes; uint32_t *words; };
      int32_t trap;
    } njk_instance;
    njk_instance *njk_new(uint32_t most_pages);
    void njk_delete(njk_instance *instance);
    uint32_t njk_memory_size(const njk_instance *instance);
    const char *njk_trap_text(int32_t trap);
    const char *njk_declarations(void);
    typedef struct { uint32_t shard, route, peers, peer, position, token; } njk_plain;
    int32_t njk_decide(njk_instance *instance, uint32_t context, uint32_t input, const uint8_t *host, uint32_t host_length,
      const uint8_t *target, uint32_t target_length, uint32_t flags, uint32_t random, uint32_t now, njk_plain *plain);
    typedef struct { int32_t length; const uint8_t *bytes; } njk_text;
    typedef struct { njk_text name, value; } njk_header;
    typedef struct { size_t length; const char *bytes; uintptr_t hash; } njk_variable_name;
    typedef struct { uint32_t length_and_marks; const uint8_t *bytes; } njk_variable_value;
    typedef njk_variable_value *njk_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);
    void njk_find_headers(const njk_header *headers, int32_t count, const njk_text *names, int32_t *places, int32_t number);
    void njk_find_variables(njk_get_variable *get, void *request, const njk_variable_name *names, njk_text *values, int32_t number);
    void njk_variable_numbers(njk_get_variable *get, void *request, const njk_variable_name *names, double *numbers, int32_t number);
    double njk_decimal(const uint8_t *text, size_t length);
    void njk_hex(char *digits, const uint8_t *bytes, int32_t number);
    double *njk_shared_page(void);
  ]]
end

local libraries = {}

local function open(path)
  local functions = ffi.load(path)
  ffi.cdef(ffi.string(functions.njk_declarations()))
  local library = { functions = functions }

  function library.new_instance(pages)
    local instance = functions.njk_new(pages or MOST_PAGES)
    if instance == nil then
      return nil, "no memory for an instance of the core"
    end
    return ffi.gc(instance, functions.njk_delete)
  end

  function library.trap_text(instance)
    return ffi.string(functions.njk_trap_text(instance.trap))
  end

  local instance = assert(library.new_instance())
  local version = functions.njk_abi_version(instance)
  if math.floor(version / 256) ~= ABI_MAJOR then
    error("the core speaks version " .. math.floor(version / 256) .. " of its interface, this program " .. ABI_MAJOR)
  end
  return library
end

function _M.load(path)
  local known = libraries[path]
  if known then
    return known
  end
  local loaded, library = pcall(open, path)
  if not loaded then
    return nil, tostring(library)
  end
  libraries[path] = library
  return library
end

return _M
