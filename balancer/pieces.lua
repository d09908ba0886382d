--- What a worker does with pieces of state: handlers for balancer.state.follower.
--
-- Contents are as controller/proxies/nginx/plan-pieces.ts makes them. Each is checked here before it takes the place of what
-- stood there; what can't be taken over leaves that in force.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local count = require "balancer.count"
local backends = require "balancer.configuration.backends"
local certificate_map = require "balancer.certificate_map"
local certificates = require "balancer.certificates"
local servers = require "balancer.configuration.servers"
local upstreams = require "balancer.upstreams"
local worker = require "balancer.worker"
local cjson = require "cjson.safe"

local byte, find, sub = string.byte, string.find, string.sub

local pieces = {}

--- Kinds of host patterns, as core-wasm/ABI.md numbers them.
local EXACT, ONE_LABEL, ANY_LABELS, ANY_HOST, DEFAULT = 0, 1, 2, 3, 4
--- Where the images say what they are: of a shard the host pattern, of a peer set its key.
local SHARD_HOST_LENGTH, SHARD_PATTERN, SHARD_HEADER = 20, 24, 96
local SET_PEERS, SET_KEY, SET_HEADER = 24, 64, 96

local function u32(text, at)
  local a, b, c, d = byte(text, at + 1, at + 4)
  return a + b * 0x100 + c * 0x10000 + d * 0x1000000
end

--- Kind and host (of a wildcard what follows `*.`) of the text of a pattern.
local function pattern_of(key)
  if key == "" then return ANY_HOST, "" end
  if key == "(default)" then return DEFAULT, "" end
  if find(key, "**.", 1, true) == 1 then return ANY_LABELS, sub(key, 4) end
  if find(key, "*.", 1, true) == 1 then return ONE_LABEL, sub(key, 3) end
  return EXACT, key
end

--- Answers of a handler from those of the core.
local function taken(ok, why)
  if ok then return true end
  return false, "PROXY_STEP_FAILED", "the core refused it: " .. tostring(why)
end

local function shard_fits(key, image)
  if #image < SHARD_HEADER then return false end
  local kind, host = pattern_of(key)
  return u32(image, SHARD_PATTERN) == kind
    and sub(image, SHARD_HEADER + 1, SHARD_HEADER + u32(image, SHARD_HOST_LENGTH)) == host
end

local OTHER_PIECE = "the image is that of another piece"

local shard = {}

function shard.validate(key, image)
  if not shard_fits(key, image) then return false, "PROXY_STEP_FAILED", OTHER_PIECE end
  return taken(worker.table:validate_shard(image))
end

function shard.load(key, image)
  if not shard_fits(key, image) then return false, "PROXY_STEP_FAILED", OTHER_PIECE end
  local ok, code, message = taken(worker.table:load_shard(image))
  if ok then count.add_host(key) end
  return ok, code, message
end

function shard.drop(key)
  count.remove_host(key)
  worker.table:remove_shard(pattern_of(key))
end

local upstream = {}

--- Image and settings of an upstream; nil where they make no sense.
local function read_upstream(key, content)
  if #content < 4 then return nil end
  local size = u32(content, 0)
  local image = sub(content, 5, 4 + size)
  if #image < size or size < SET_HEADER then return nil end
  local at = u32(image, SET_KEY)
  if sub(image, at + 1, at + u32(image, SET_KEY + 4)) ~= key then return nil end
  local settings = cjson.decode(sub(content, 5 + size))
  if type(settings) ~= "table" or type(settings.transport) ~= "table" then return nil end
  return image, settings
end

local NOT_READABLE = "the content is not that of an upstream"

function upstream.validate(key, content)
  local image = read_upstream(key, content)
  if not image then return false, "PROXY_STEP_FAILED", NOT_READABLE end
  return taken(worker.table:validate_peers(image))
end

function upstream.load(key, content)
  local image, settings = read_upstream(key, content)
  if not image then return false, "PROXY_STEP_FAILED", NOT_READABLE end
  local ok, code, message = taken(worker.table:load_peers(image))
  if ok then upstreams.set(key, settings, u32(image, SET_PEERS)) end
  return ok, code, message
end

function upstream.drop(key)
  worker.table:remove_peers(key)
  upstreams.remove(key)
end

local peer_states = {}
--- By upstream: ids of the peers that have a state.
local stated = {}

local function read_states(content)
  local list = cjson.decode(content)
  if type(list) ~= "table" or next(list) and #list == 0 then return nil end
  for _, one in ipairs(list) do
    if type(one) ~= "table" or type(one.address) ~= "string" or type(one.port) ~= "number" or type(one.state) ~= "string" then
      return nil
    end
  end
  return list
end

function peer_states.validate(_, content)
  if read_states(content) then return true end
  return false, "PROXY_STEP_FAILED", "the content is no list of states"
end

function peer_states.load(key, content)
  local list = read_states(content)
  if not list then return false, "PROXY_STEP_FAILED", "the content is no list of states" end
  local before = stated[key] or {}
  local now = {}
  for _, one in ipairs(list) do
    local id = find(one.address, ":", 1, true) and ("[" .. one.address .. "]:" .. one.port) or (one.address .. ":" .. one.port)
    now[id] = true
    worker.table:set_peer_state(key, id, one.state, worker.now())
  end
  for id in pairs(before) do
    if not now[id] then worker.table:set_peer_state(key, id, "unchecked", worker.now()) end
  end
  stated[key] = now
  upstreams.changed(key)
  return true
end

function peer_states.drop(key)
  for id in pairs(stated[key] or {}) do worker.table:set_peer_state(key, id, "unchecked", worker.now()) end
  stated[key] = nil
  upstreams.changed(key)
end

local handlers = {
  [record.SHARD] = shard,
  [record.UPSTREAM] = upstream,
  [record.CERTIFICATE] = certificates,
  [record.PEER_STATES] = peer_states,
  [record.BACKEND] = backends,
  [record.SERVER] = servers.hosts,
  [record.NAMED_CERTIFICATE] = servers.certificates,
  -- Looked up where they are asked for.
  [record.SETTING] = { load = function() return true end, drop = function() end },
  [record.CERTIFICATE_MAP] = certificate_map,
}

--- Tells the follower what to do with pieces.
function pieces.register()
  for kind, handler in pairs(handlers) do follower.on(kind, handler) end
end

--- Puts a piece into a core that took the place of another one.
function pieces.put_back(kind, key, content)
  handlers[kind].load(key, content)
end

return pieces
