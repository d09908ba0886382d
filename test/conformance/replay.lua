-- The native core as a host of the conformance suite: reads the suite, decides by a RoutingTable of balancer/core, and writes a
-- line for each decision. README.md describes both files.

local bit = require "bit"
local cjson = require "cjson"
local Context = require "balancer.core.context"
local native = require "balancer.core.native"
local RoutingTable = require "balancer.core.routing_table"

local band, rshift = bit.band, bit.rshift
local F = Context.FIELDS
local null = cjson.null

local _M = {}

local BY = { [0] = "none", "route", "guard", "unmatched" }
local PATTERNS = { [0] = "", "*.", "**.", "", "(default)" }
local RENDERED = { [1] = true, [3] = true, [7] = true, [8] = true, [9] = true }

local function read_file(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function quoted(text)
  local escaped = text:gsub('[%c"\\\127-\255]', function(char)
    if char == '"' or char == "\\" then
      return "\\" .. char
    end
    return string.format("\\u%04x", char:byte())
  end)
  return '"' .. escaped .. '"'
end

-- What the JSON of a request has as characters U+0000 to U+00FF is bytes.
local function bytes(text)
  return (text:gsub("[\194\195][\128-\191]", function(char)
    return string.char((char:byte(1) - 192) * 64 + char:byte(2) - 128)
  end))
end

local Request = {}
Request.__index = Request
function Request:client_address()
  return self.client[1]
end
function Request:client_port()
  return string.format("%d", self.client[2])
end
function Request:method()
  return self.verb
end
function Request:protocol()
  return self.version
end
function Request:header(name)
  return self.values[name]
end

local function request_of(value)
  local values = {}
  for _, header in ipairs(value.headers) do
    values[bytes(header[1])] = bytes(header[2])
  end
  local client = { bytes(value.client[1]), value.client[2] }
  return setmetatable({ client = client, verb = bytes(value.method), version = value.protocol, values = values }, Request)
end

local function word_at(text, at)
  local a, b, c, d = text:byte(at + 1, at + 4)
  return a + b * 256 + c * 65536 + d * 16777216
end

-- Puts the images of a bundle, which the suite's own test has found sound, into a new table.
local function load_bundle(library, text)
  local state = assert(RoutingTable.new(library))
  assert(text:sub(1, 4) == "NJKB" and word_at(text, 12) == #text)
  local at = 24
  for _ = 1, word_at(text, 8) do
    local kind, key_length, length = text:byte(at + 1), word_at(text, at + 4), word_at(text, at + 8)
    at = at + 12 + key_length + (-key_length) % 4
    local content = text:sub(at + 1, at + length)
    at = at + length + (-length) % 4
    if kind == 1 then
      assert(state:load_shard(content))
    elseif kind == 2 then
      assert(state:load_peers(content))
    end
  end
  return state
end

local function settings(context)
  local memory, list = context.memory, {}
  local at = context:word(F.SETTINGS)
  local last = at + context:word(F.SETTINGS_LENGTH)
  while at < last do
    local head, size = memory:word(at), memory:word(at + 4)
    local tag = band(head, 0x7fff)
    local name = size >= 4 and memory:text(at + 12, memory:word(at + 8)) or ""
    local value = ""
    if RENDERED[tag] then
      local length = context.functions.njk_render_setting(memory.instance, context.address, #list)
      value = length > 0 and memory:text(context:word(F.RENDERED), length) or ""
    end
    list[#list + 1] = string.format("[%d,%d,%s,%s]", tag, rshift(head, 16), quoted(name), quoted(value))
    at = at + 8 + size
  end
  return "[" .. table.concat(list, ",") .. "]"
end

local function shard_of(context)
  local memory, image = context.memory, context:word(F.SHARD)
  if image == 0 then
    return nil
  end
  return PATTERNS[memory:word(image + 24)] .. memory:text(image + 96, memory:word(image + 20))
end

local function line(fields)
  local parts = {}
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    parts[#parts + 1] = '"' .. fields[i] .. '":' .. (value == null and "null" or tostring(value))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function own(text)
  return text and quoted(text) or null
end

local function number(value)
  return value and string.format("%d", value) or null
end

-- The decision as RoutingTable gives it, with what it does not tell taken from the context.
local function told(state, decision)
  local context = state.context
  local long = decision.status == 414 and not decision.origin and state.too_long
  local by = long and "none" or BY[context:word(F.ORIGIN)]
  local rule = by == "route" and context:word(F.ROUTE) or by == "guard" and context:word(F.GUARD) or nil
  local peer = decision.peer
  return line {
    "action", quoted(decision.action),
    "status", number(decision.status or 0),
    "shard", own(not long and shard_of(context) or nil),
    "by", quoted(by),
    "rule", number(rule),
    "upstream", own(decision.upstream_key),
    "peer", own(peer and peer.id),
    "index", number(peer and context:word(F.PEER)),
    "position", number(decision.position),
    "hash", number(decision.hash),
    "session", own(decision.session),
    "new", decision.new_session or false,
    "busy", decision.busy or false,
    "text", quoted(decision.target or decision.location or decision.body or ""),
    "type", own(decision.content_type),
    "settings", long and "[]" or settings(context),
  }
end

local function decide(state, value)
  local host, target = bytes(value.host), bytes(value.target)
  state.too_long = #host + #target > 65532
  local decision = assert(
    state:decide(host, target, value.scheme == "https", value.random, value.now, request_of(value), RoutingTable.new_decision())
  )
  local answer = told(state, decision)
  if decision.token then
    assert(state:peer_done(decision.token, false, value.now))
  end
  return answer
end

function _M.serve(path, folder)
  local library = assert(native.load(path))
  local state
  local lines = {}
  local first = true
  for text in io.lines(folder .. "/requests.jsonl") do
    if not first then
      local value = cjson.decode(text)
      if value.bundle then
        state = load_bundle(library, read_file(folder .. "/" .. value.bundle))
      else
        lines[#lines + 1] = decide(state, value)
      end
    end
    first = false
  end
  ngx.print(table.concat(lines, "\n"), "\n")
end

return _M
