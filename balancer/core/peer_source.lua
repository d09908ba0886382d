-- Peer sets that are compiled in the worker itself: addresses -> source -> image, by the core's own compiler.
--
--   peer_source.address(text)       -> {id prefix, halves, family}: what an IP address is, in its one canonical form; nil for
--                                      anything else. Brackets around an IPv6 address are taken off
--   peer_source.id(address, port)   -> `ip:port`, or `[ip]:port`
--   peer_source.compile(table, set) -> bytes of the image, or nil and what is wrong. `set`: {key, display, method, peers}, method
--                                      as core-wasm/ABI.md numbers them, peers {address (see above), port}, each of weight 1

local ffi = require "ffi"
local bit = require "bit"
local ngx = ngx or njt
local status = require "balancer.core.status"

local band, rshift = bit.band, bit.rshift
local char, match, reverse, sub = string.char, string.match, string.reverse, string.sub

ffi.cdef [[
int inet_pton(int family, const char *text, void *address);
const char *inet_ntop(int family, const void *address, char *text, unsigned int size);
]]

local peer_source = {
  -- Methods.
  ROUND_ROBIN = 0,
  RING = 1,
  RANDOM = 5,
  RANDOM_TWO = 6,
}

local IPV4 = { number = 2, bytes = 4, family = 4 }
-- Linux and the BSDs number IPv6 otherwise.
local IPV6 = { number = ffi.os == "Linux" and 10 or ffi.os == "OSX" and 30 or 28, bytes = 16, family = 6 }
local TEXT_SIZE = 64
local VERSION = 2
local NOTHING = ("\0"):rep(16)

local bytes = ffi.new("uint8_t[16]")
local text_buffer = ffi.new("char[?]", TEXT_SIZE)

local function u16(number)
  return char(band(number, 255), rshift(number, 8))
end

local function u32(number)
  return char(band(number, 255), band(rshift(number, 8), 255), band(rshift(number, 16), 255), rshift(number, 24))
end

local function read(text, kind)
  if ffi.C.inet_pton(kind.number, text, bytes) ~= 1 then return nil end
  ffi.C.inet_ntop(kind.number, bytes, text_buffer, TEXT_SIZE)
  local raw = ffi.string(bytes, kind.bytes)
  -- An IPv4 address is the upper 32 bits of the first number.
  local halves = kind == IPV4 and "\0\0\0\0" .. reverse(raw) .. sub(NOTHING, 1, 8)
    or reverse(sub(raw, 1, 8)) .. reverse(sub(raw, 9))
  return { text = ffi.string(text_buffer), halves = halves, family = kind.family }
end

function peer_source.address(text)
  if text:find("%z") then return nil end
  return read(text, IPV4) or read(match(text, "^%[(.*)%]$") or text, IPV6)
end

function peer_source.id(address, port)
  return (address.family == 6 and "[" .. address.text .. "]:" or address.text .. ":") .. port
end

local function source_of(set)
  local parts = {
    "NJPS", u16(VERSION), char(set.method), "\0", u32(#set.peers), u32(#set.key), u32(#set.display), u32(0), NOTHING, set.key,
    set.display,
  }
  for _, peer in ipairs(set.peers) do
    local address = peer.address
    local id = peer_source.id(address, peer.port)
    parts[#parts + 1] = u16(peer.port) .. u16(1) .. char(#id, #address.text, address.family, 0) .. address.halves .. id
  end
  return table.concat(parts)
end

function peer_source.compile(table_, set)
  local memory = table_.memory
  local source = source_of(set)
  local at = memory:place(source)
  local result = at and memory:alloc(8)
  if not result then
    if at then memory:free(at) end
    return table_:failure(status.MEMORY)
  end
  local code = table_.functions.njk_peer_set_compile(memory.instance, at, #source, 0, result)
  if code < 0 then
    if memory.instance.trap == 0 then
      memory:free(at)
      memory:free(result)
    end
    return table_:failure(code)
  end
  local image = memory:word(result)
  local content = memory:text(image, memory:word(result + 4))
  for _, block in ipairs { image, result, at } do memory:free(block) end
  return content
end

return peer_source
