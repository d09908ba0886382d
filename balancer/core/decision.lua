-- Reads what the core decided, from its context into a Lua table.
--
--   Decision.new() -> a table with all fields, each false. What a field has not is false and never nil: a table that fields come into and
--                     go from is laid out anew time and again
--   Decision.read_plain(state, decision) -> decision, where the core says that it is plain (see context.lua); as `read`
--   Decision.read(state, decision, target, target_length) -> decision; `state` is a RoutingTable, `target` what was asked for,
--   `decision` a table that is written over:
--     plain         true where there is a peer, key and text of its upstream, token, position and origin, and nothing else
--     action        "proxy", "redirect" or "return"
--     status        of a redirect or return
--     target        (proxy) path and query for the upstream; false where they are those of `target`
--     location      (redirect)
--     body, content_type  (return) false where the program is to show its own page for the status
--     upstream_key  identity of the upstream, `kind/namespace/object/name`: of proxy, and of a 502 or 503 of the core if the
--                   upstream has peers
--     upstream      `namespace/service:port`, or "" where an upstream was chosen that has no peer set
--     peer          (proxy) as peer_set.lua gives it; not to be changed
--     token         (proxy) stands for the peer, for peer_done
--     position      (proxy) of the peer on its ring or in its order
--     hash          what the method hashes, for pick_peer; false where it hashes nothing
--     session       (proxy) value of the session cookie of the peer, where the upstream has one
--     new_session   true if the client is to be given that cookie
--     busy          true of a 502: each peer that could be used has as many requests under way as it may
--     headers       false, or a list of {op, name, value, always}; op as in settings.lua
--     error_pages   false, or a list of {codes, kind, status, content_type, body, location, headers}: what takes the place of an
--                   answer with a status of which `codes[status]` is true; kind "return" (without status: that of the answer) or
--                   "redirect"; the first that has the status counts. Also of a return that the core gives for an upstream
--     origin        false, or {resource, host, path} of the rule that decided; not to be changed
-- Texts are bytes, ready for the wire.

local bit = require "bit"
local ffi = require "ffi"
local Context = require "balancer.core.context"
local ImageCache = require "balancer.core.image_cache"
local PeerSet = require "balancer.core.peer_set"
local read_settings = require("balancer.core.settings").read
local ShardNames = require "balancer.core.shard_names"

-- By their names, see routing_table.lua.
local image_of, peer_of, route_of = ImageCache.get, PeerSet.peer, ShardNames.route
local band = bit.band
local F = Context.FIELDS

local PROXY = 1
local REDIRECT = 2
local ORIGIN_ROUTE = 1
local ORIGIN_GUARD = 2
-- Marks of a choice.
local BUSY = 1
local HASHED = 2
local NEW_SESSION = 4

ffi.cdef "int memcmp(const void *one, const void *other, size_t length);"

local Decision = {}

function Decision.new()
  return {
    plain = false,
    action = false,
    status = false,
    target = false,
    location = false,
    body = false,
    content_type = false,
    upstream_key = false,
    upstream = false,
    peer = false,
    token = false,
    position = false,
    hash = false,
    session = false,
    new_session = false,
    busy = false,
    headers = false,
    error_pages = false,
    origin = false,
  }
end

local function text(context, at, length_at)
  local length = context:word(length_at)
  if length == 0 then
    return ""
  end
  return context.memory:text(context:word(at), length)
end

local function read_origin(state, context)
  local kind = context:word(F.ORIGIN)
  local image = context:word(F.SHARD)
  if kind == 0 or image == 0 then
    return false
  end
  local memory = context.memory
  local names = state.shards:get(memory, image)
  if kind == ORIGIN_ROUTE then
    return names:route(memory, image, context:word(F.ROUTE))
  end
  if kind == ORIGIN_GUARD then
    return names:guard(memory, image, context:word(F.GUARD))
  end
  return names:unmatched(memory, image)
end

-- The peer that the last call picked: sets peer, token and position. Answers the set.
function Decision.read_peer(state, decision)
  local context = state.context
  local image = context:word(F.PEERS)
  local set = state.sets:get(context.memory, image)
  local index = context:word(F.PEER)
  decision.peer = set:peer(context.memory, image, index)
  decision.token = PeerSet.token(context.memory, image, index)
  decision.position = context:word(F.POSITION)
  decision.session = decision.peer.session or false
  return set
end

-- True if the text of the decision is these bytes.
local function is_text(context, bytes, length)
  local instance = context.memory.instance
  return context:word(F.TEXT_LENGTH) == length
    and ffi.C.memcmp(instance.bytes + context:word(F.TEXT), bytes, length) == 0
end

-- Of a table that has held an answer of the core: what a decision to proxy has not.
local function forget_answer(decision)
  decision.status, decision.busy = false, false
  decision.location, decision.body, decision.content_type = false, false, false
end

local function read_proxy(state, context, decision, marks, target, target_length)
  if decision.action ~= "proxy" then
    forget_answer(decision)
    decision.action = "proxy"
  end
  local set = Decision.read_peer(state, decision)
  decision.upstream_key, decision.upstream = set.key, set.display
  decision.target = not is_text(context, target, target_length) and text(context, F.TEXT, F.TEXT_LENGTH)
  decision.new_session = decision.session and band(marks, NEW_SESSION) ~= 0
end

local function read_answer(state, context, decision, marks, action, set)
  forget_answer(decision)
  decision.peer, decision.token, decision.position = false, false, false
  decision.session, decision.new_session, decision.target = false, false, false
  decision.upstream_key, decision.upstream = false, false
  decision.status = context:word(F.STATUS)
  if action == REDIRECT then
    decision.action = "redirect"
    decision.location = text(context, F.TEXT, F.TEXT_LENGTH)
    return
  end
  decision.action = "return"
  if context:word(F.TYPE_LENGTH) > 0 then
    decision.body = text(context, F.TEXT, F.TEXT_LENGTH)
    decision.content_type = text(context, F.TYPE, F.TYPE_LENGTH)
  end
  if set ~= 0 then
    local facts = state.sets:get(context.memory, set)
    decision.upstream_key, decision.upstream = facts.key, facts.display
    decision.busy = band(marks, BUSY) ~= 0
  elseif context:word(F.UPSTREAM) ~= 0 then
    decision.upstream = ""
  end
end

local function make_plain(decision)
  forget_answer(decision)
  decision.plain, decision.action = true, "proxy"
  decision.hash, decision.session, decision.new_session, decision.target = false, false, false, false
  decision.headers, decision.error_pages = false, false
end

function Decision.read_plain(state, decision)
  -- Most decisions are, and what all of them have stands there from the one before.
  if not decision.plain then
    make_plain(decision)
  end
  local context = state.context
  local memory, plain = context.memory, context.plain
  local image = plain.peers
  local set = image_of(state.sets, memory, image)
  decision.peer, decision.token, decision.position = peer_of(set, memory, image, plain.peer), plain.token, plain.position
  decision.upstream_key, decision.upstream = set.key, set.display
  image = plain.shard
  decision.origin = route_of(image_of(state.shards, memory, image), memory, image, plain.route)
  return decision
end

function Decision.read(state, decision, target, target_length)
  decision.plain = false
  local context = state.context
  local action = context:word(F.ACTION)
  local marks = context:word(F.MARKS)
  local settings = context:word(F.SETTINGS_LENGTH)
  local set = context:word(F.PEERS)
  local hashed = band(marks, HASHED) ~= 0 and (action == PROXY or set ~= 0 and band(marks, BUSY) ~= 0)
  decision.hash = hashed and context:word(F.HASH)
  decision.origin = read_origin(state, context)
  if action == PROXY then
    read_proxy(state, context, decision, marks, target, target_length)
  else
    read_answer(state, context, decision, marks, action, set)
  end
  -- Last, see settings.lua.
  decision.headers, decision.error_pages = false, false
  if settings > 0 then
    decision.headers, decision.error_pages = read_settings(context, settings)
  end
  return decision
end

-- What is answered to a request whose host and target are too long for the core.
function Decision.too_long(decision)
  for key in pairs(decision) do
    decision[key] = false
  end
  decision.action, decision.status = "return", 414
  return decision
end

return Decision
