--- Ids for requests that come without one: 32 hex digits, of random bytes of the system. What NGINX has for it, `$request_id`,
-- asks OpenSSL anew each time, which takes a tenth of the time of a whole request. Here one read is enough for many.
local ffi = require "ffi"
local jit = require "jit"

local copy = ffi.copy
local write_hex

local request_ids = {
  --- Bytes of an id.
  LENGTH = 32,
}

local SOURCE = "/dev/urandom"
local RANDOM_BYTES = 16
local BLOCK = 4096

local block = ffi.new("uint8_t[?]", BLOCK)
local id = ffi.new("char[?]", request_ids.LENGTH)
local used = BLOCK
local source

--- Opens the source; in `init_worker`, so that no two workers have the same bytes. `library`: the native core, see balancer.core.native.
function request_ids.open(library)
  write_hex = library.functions.njk_hex
  local why
  source, why = io.open(SOURCE, "rb")
  if source then source:setvbuf("no") end
  return source, why
end

local function fill()
  local bytes = source and source:read(BLOCK)
  if not bytes or #bytes < BLOCK then return false end
  copy(block, bytes, BLOCK)
  used = 0
  return true
end
-- So rare that it is not to be a part of each trace that asks for an id.
jit.off(fill)

--- A new id: the address of its LENGTH bytes, which the next one takes; nil where the system has no random bytes.
function request_ids.next()
  if used >= BLOCK and not fill() then return nil end
  local at = block + used
  used = used + RANDOM_BYTES
  write_hex(id, at, RANDOM_BYTES)
  return id
end

return request_ids
