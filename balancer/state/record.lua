--- Records: how a piece of state travels, on the wire and in the journal.
--
-- Little-endian: u32 length of what follows, u32 CRC-32 of what follows it, u8 op, u8 kind, u16 length of the key,
-- 8 bytes digest (the first of the SHA-256 of the content; zero on remove), key (UTF-8), content.
-- controller/proxies/nginx/record.ts is the other end.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local crc32 = ngx.crc32_long
local byte, char, find, sub = string.byte, string.char, string.find, string.sub

local record = {
  SET = 1,
  REMOVE = 2,
  -- Kinds of pieces.
  SHARD = 1,
  UPSTREAM = 2,
  CERTIFICATE = 3,
  PEER_STATES = 4,
  -- 5 is nobody's. Those that follow are posted, see balancer.configuration.
  BACKEND = 6,
  SERVER = 7,
  NAMED_CERTIFICATE = 8,
  SETTING = 9,
  -- Which map of certificates is to be relied on, see balancer.certificate_map.
  CERTIFICATE_MAP = 10,
}

--- Bytes before the key, counted from the length on.
local HEAD = 20
--- The least that the length can say: a record without key and content.
local LEAST = HEAD - 4

local function u32(text, at)
  local a, b, c, d = byte(text, at, at + 3)
  return a + b * 0x100 + c * 0x10000 + d * 0x1000000
end

--- The length that a record states in its first four bytes, of `text` at `at`.
record.length = u32

--- The name of a piece, unique among all: `<kind>:<key>`.
function record.name(kind, key)
  return kind .. ":" .. key
end

--- Reads the record of `text` at `at` (from 1).
-- @return the record `{op, kind, key, digest, content}` and where the next one begins; nil and why it can't be read
function record.read(text, at)
  local size = #text
  if at + HEAD - 1 > size then return nil, "a record is cut off" end
  local length = u32(text, at)
  local last = at + 3 + length
  if length < LEAST or last > size then return nil, "a record is cut off" end
  if crc32(sub(text, at + 8, last)) ~= u32(text, at + 4) then return nil, "a record does not fit its checksum" end
  local op, kind, low, high = byte(text, at + 8, at + 11)
  local content = at + HEAD + low + high * 0x100
  if content > last + 1 then return nil, "a key is longer than its record" end
  if op ~= record.SET and op ~= record.REMOVE then return nil, "a record neither sets nor removes" end
  local key = sub(text, at + HEAD, content - 1)
  -- Names of pieces stand in lists, one a line.
  if find(key, "%c") then return nil, "a key has a control character" end
  local read = { op = op, kind = kind, key = key, digest = sub(text, at + 12, at + 19), content = sub(text, content, last) }
  return read, last + 1
end

local function bytes_of(value)
  return char(value % 0x100, math.floor(value / 0x100) % 0x100, math.floor(value / 0x10000) % 0x100, math.floor(value / 0x1000000))
end

--- The record that sets a piece. `digest`: 8 bytes.
function record.write(kind, key, digest, content)
  local covered = char(record.SET, kind, #key % 0x100, math.floor(#key / 0x100)) .. digest .. key .. content
  return bytes_of(#covered + 4) .. bytes_of(crc32(covered)) .. covered
end

--- All records of `text`; nil and why, if any of it can't be read.
function record.read_all(text)
  local records, count, at = {}, 0, 1
  while at <= #text do
    local read, after = record.read(text, at)
    if not read then return nil, after end
    count = count + 1
    records[count] = read
    at = after
  end
  return records
end

return record
