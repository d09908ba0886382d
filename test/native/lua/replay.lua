-- The worker's side of the tests of the native core: reads operations, carries them out on a RoutingTable, and answers with a
-- line for each. test/native/replay.ts is the other side, and does the same with core.wasm.
--
-- An operation is a letter, the number of its fields as a byte, and the fields: a length of 4 little-endian bytes, and bytes.

local native = require "balancer.core.native"
local RoutingTable = require "balancer.core.routing_table"

local _M = {}

-- Path of the library, which the test sets.
_M.path = nil

local state
local decision, choice = RoutingTable.new_decision(), {}
-- Images that were loaded, to be put back after a trap.
local kept = {}

local function escape(text)
  return (text:gsub("[^%w%./:_%-]", function(char)
    return string.format("%%%02X", char:byte())
  end))
end

local function line(...)
  local fields = { ... }
  for i = 1, select("#", ...) do
    local field = fields[i]
    fields[i] = field == nil and "" or escape(tostring(field))
  end
  return table.concat(fields, "|")
end

local function said(done, err)
  return done and "ok" or line("error", err)
end

local Request = {}
Request.__index = Request
function Request:client_address()
  return self[6]
end
function Request:client_port()
  return self[7]
end
function Request:method()
  return self[8]
end
function Request:protocol()
  return self[9]
end
function Request:header(name)
  for i = 10, #self, 2 do
    if self[i] == name then
      return self[i + 1]
    end
  end
  return nil
end

local function told_headers(headers)
  local fields = {}
  for i, change in ipairs(headers or {}) do
    fields[i] = table.concat({ change.op, change.name or "", change.value or "", tostring(change.always) }, ",")
  end
  return table.concat(fields, ";")
end

local function told_pages(pages)
  local fields = {}
  for i, page in ipairs(pages or {}) do
    local codes = {}
    for code in pairs(page.codes) do
      codes[#codes + 1] = code
    end
    table.sort(codes)
    local text = page.body or page.location
    fields[i] = table.concat({ page.kind, page.status or "", table.concat(codes, " "), page.content_type or "", text,
      told_headers(page.headers) }, ",")
  end
  return table.concat(fields, ";")
end

-- What was decided. In brief: without names, which a hostile image may have put together from any bytes.
local function told(d, brief, target)
  local text = d.action == "proxy" and (d.target or target) or d.location or d.body or nil
  local status = d.status or nil
  if brief then
    return line(d.action, status, d.peer and d.peer.port or nil, text, told_headers(d.headers))
  end
  local peer = d.peer and d.peer.id or nil
  local origin = d.origin and (d.origin.resource .. " " .. d.origin.host .. " " .. d.origin.path) or nil
  local flags = (d.new_session and 1 or 0) .. (d.busy and 1 or 0)
  return line(d.action, status, d.upstream_key or nil, d.upstream or nil, peer, d.token or nil, d.position or nil, d.hash or nil,
    d.session or nil, flags, text, d.content_type or nil, told_headers(d.headers), told_pages(d.error_pages), origin)
end

local function restore(routing_table)
  for _, entry in ipairs(kept) do
    routing_table[entry[1]](routing_table, entry[2])
  end
end

local function decide(fields, brief)
  setmetatable(fields, Request)
  local random, now = tonumber(fields[4]), tonumber(fields[5])
  local host, target = fields[1], fields[2]
  -- As a proxy asks: into the table of the decision before.
  local decided, err = state:decide_bytes(host, #host, target, #target, fields[3] == "1", random, now, fields, decision)
  return decided and told(decided, brief, target) or line("error", err)
end

local OPERATIONS = {
  N = function()
    local library = assert(native.load(_M.path))
    kept = {}
    state = assert(RoutingTable.new(library, { restore = restore }))
    return "ok"
  end,
  S = function(fields)
    kept[#kept + 1] = { "load_shard", fields[1] }
    return said(state:load_shard(fields[1]))
  end,
  s = function(fields)
    return said(state:remove_shard(tonumber(fields[1]), fields[2]))
  end,
  P = function(fields)
    kept[#kept + 1] = { "load_peers", fields[1] }
    return said(state:load_peers(fields[1]))
  end,
  p = function(fields)
    return said(state:remove_peers(fields[1]))
  end,
  H = function(fields)
    return said(state:set_peer_state(fields[1], fields[2], fields[3], tonumber(fields[4])))
  end,
  R = decide,
  r = function(fields)
    return decide(fields, true)
  end,
  -- A regex: the status of compiling it, which goes as deep as the core ever does.
  X = function(fields)
    local memory = state.memory
    local at, result = memory:place(fields[1]), memory:alloc(16)
    local code = memory.functions.njk_regex_compile(memory.instance, at, #fields[1], 0, result)
    local reason = code == -1 and memory:word(result + 12) or 0
    if code == 0 then
      memory:free(memory:word(result))
    end
    memory:free(at)
    memory:free(result)
    return line(code, reason)
  end,
  K = function(fields)
    local tried = {}
    for i = 5, #fields do
      tried[#tried + 1] = tonumber(fields[i])
    end
    local picked, err = state:pick_peer(fields[1], tonumber(fields[2]), tried, tonumber(fields[3]), tonumber(fields[4]), choice)
    if not picked then
      return line(err)
    end
    return line(picked.peer.id, picked.token, picked.position, picked.session or nil)
  end,
  D = function(fields)
    return said(state:peer_done(tonumber(fields[1]), fields[2] == "1", tonumber(fields[3])))
  end,
  O = function(fields)
    local lines = {}
    for i, entry in ipairs(state:peers_of(fields[1])) do
      local peer = entry.peer
      lines[i] = line(peer.address, peer.port, peer.weight, peer.draining, entry.state, entry.conns, entry.out)
    end
    return table.concat(lines, ";")
  end,
  M = function()
    return line(state:memory_used())
  end,
  -- Calls functions of a library by itself: path, then names, each without arguments on an instance of its own.
  L = function(fields)
    local library = assert(native.load(fields[1]))
    local answers = {}
    for i = 2, #fields do
      local instance = assert(library.new_instance())
      local first = library.functions[fields[i]](instance)
      local second = library.functions.njk_sound(instance)
      local text = instance.trap == 0 and "" or library.trap_text(instance)
      answers[#answers + 1] = line(fields[i], first, second, text)
    end
    return table.concat(answers, ";")
  end,
  -- Many instances side by side, of which some have trapped.
  I = function(fields)
    local library = assert(native.load(fields[1]))
    local instances, sum = {}, 0
    for i = 1, tonumber(fields[2]) do
      instances[i] = assert(library.new_instance())
      if i % 3 == 0 then
        library.functions.njk_unreachable_code(instances[i])
      end
    end
    for _, instance in ipairs(instances) do
      sum = sum + library.functions.njk_sound(instance)
    end
    return line(sum)
  end,
  -- Most pages that an instance gets: the address after which there is no memory.
  G = function(fields)
    local library = assert(native.load(_M.path))
    local instance = assert(library.new_instance(tonumber(fields[1])))
    local blocks = 0
    while blocks < 10000 and library.functions.njk_alloc(instance, 1048576) ~= 0 do
      blocks = blocks + 1
    end
    return line(blocks, library.functions.njk_memory_size(instance) <= tonumber(fields[1]) * 65536, instance.trap)
  end,
  -- The declarations of the library.
  E = function()
    return require("ffi").string(assert(native.load(_M.path)).functions.njk_declarations())
  end,
  -- Resident memory of this process in KiB.
  V = function()
    collectgarbage()
    for text in io.lines("/proc/self/status") do
      local kilobytes = text:match("^VmRSS:%s+(%d+)")
      if kilobytes then
        return kilobytes
      end
    end
  end,
  T = function()
    return line(state.traps)
  end,
}

local function length_at(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return a + b * 256 + c * 65536 + d * 16777216
end

function _M.run(text)
  local lines, at = {}, 1
  while at <= #text do
    local operation = OPERATIONS[text:sub(at, at)]
    local fields = {}
    local count = text:byte(at + 1)
    at = at + 2
    for i = 1, count do
      local length = length_at(text, at)
      fields[i] = text:sub(at + 4, at + 3 + length)
      at = at + 4 + length
    end
    lines[#lines + 1] = operation(fields)
  end
  return lines
end

-- The body of the request at hand, wherever NGINX has put it.
function _M.body()
  ngx.req.read_body()
  local body = ngx.req.get_body_data()
  if body then
    return body
  end
  local path = ngx.req.get_body_file()
  if not path then
    return ""
  end
  local file = assert(io.open(path, "rb"))
  body = file:read("*a")
  file:close()
  return body
end

function _M.serve()
  local lines = _M.run(_M.body())
  ngx.say(table.concat(lines, "\n"))
end

return _M
