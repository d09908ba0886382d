-- The core as native code: loads the library that `npm run build:native` makes, and gives instances of it.
--
--   native.load(path)           -> library, or nil and what is wrong. A library stays loaded as long as the Lua VM.
--   library.functions           the exports of the core, as C functions: `njk_route(instance, context, ...)` and so on, as
--                               core-wasm/ABI.md describes them, with an instance before their arguments. Arguments are
--                               unsigned, results signed 32-bit integers. TRAPPED is answered for a call that trapped, and
--                               for every later call of that instance.
--   library.new_instance(pages) -> an instance with at most so many pages of memory (64 KiB each), or nil and what is wrong.
--                               It is freed by the garbage collector.
--   library.functions.njk_find_header(headers, count, name, length) -> the place of the header with this name among so many, -1
--                               for none, -2 for more than one
--   library.functions.njk_decimal(text, length) -> the number that a text of bytes begins with, such as 12 or 0.003; 0 for none
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
    typedef struct { int32_t length; const uint8_t *bytes; } njk_text;
    typedef struct { njk_text name, value; } njk_header;
    int32_t njk_find_header(const njk_header *headers, int32_t count, const char *name, int32_t length);
    double njk_decimal(const uint8_t *text, size_t length);
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
