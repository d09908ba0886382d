--- Backends that were posted: a piece of kind 6 each, content as `backend.write` makes it, key its name. A backend is an upstream
-- with the key `backend/<name>`; keys of the controller's upstreams have more parts, so both live side by side.
local ngx = ngx or njt
local cjson = require "cjson.safe"
local affinity = require "balancer.configuration.affinity"
local backend = require "balancer.configuration.backend"
local by_name = require "balancer.by_name"
local canary = require "balancer.configuration.canary"
local hash_key = require "balancer.configuration.hash_key"
local peer_source = require "balancer.core.peer_source"
local subsets = require "balancer.configuration.subsets"
local upstreams = require "balancer.upstreams"
local worker = require "balancer.worker"

local bit = require "bit"
local tohex = bit.tohex

local backends = {}

local CODE = "CONFIGURATION_INVALID"

--- By name.
local known = {}

local function key_of(name)
  return "backend/" .. name
end

--- As the existing balancer has it: a session cookie before a hash, a hash before what `load-balance` says. `ewma` is two by
-- lot of which the one with fewer requests under way serves: it weighs the same two candidates, by load in place of latency.
local function method_of(session, parts, name)
  if session or parts then return peer_source.RING end
  return name == "ewma" and peer_source.RANDOM_TWO or peer_source.ROUND_ROBIN
end

--- What a worker needs of a content, and the image; nil and what is wrong.
local function prepare(name, content)
  local settings, why = backend.read(cjson.decode(content), "backend")
  if not settings then return nil, why end
  if settings.name ~= name then return nil, "the content is that of another backend" end
  local policy
  policy, why = canary.read(settings.trafficShapingPolicy)
  if not policy then return nil, "trafficShapingPolicy." .. why end
  local by = settings.upstreamHashByConfig or {}
  local text = by["upstream-hash-by"]
  local session = affinity.read(settings.sessionAffinityConfig)
  local parts = not session and text and text ~= "" and hash_key.read(text) or nil
  local peers, places = {}, {}
  for i, endpoint in ipairs(settings.endpoints or {}) do
    local address = peer_source.address(endpoint.address)
    peers[i] = { address = address, port = endpoint.port }
    places[affinity.place(peer_source.id(address, endpoint.port))] = true
  end
  local has_subsets = parts and by["upstream-hash-by-subset"]
  local subset
  if has_subsets then
    subset, why = subsets.prepare(key_of(name), name, peers, by["upstream-hash-by-subset-size"])
    if not subset then return nil, why end
  end
  local method = method_of(session, not has_subsets and parts, settings["load-balance"])
  local image
  image, why = peer_source.compile(worker.table, { key = key_of(name), display = name, method = method, peers = peers })
  if not image then return nil, why end
  return {
    name = name,
    key = key_of(name),
    digest = affinity.digest(name),
    peer_count = #peers,
    ring = method == peer_source.RING,
    hash_key = parts,
    subsets = subset,
    session = session,
    places = session and session.persistent and places or nil,
    policy = policy,
    alternatives = settings.alternativeBackends or {},
  }, image
end

function backends.validate(name, content)
  local prepared, why = prepare(name, content)
  if prepared then return true end
  return false, CODE, why
end

function backends.load(name, content)
  local prepared, image = prepare(name, content)
  if not prepared then return false, CODE, image end
  local ok, why = worker.table:load_peers(image)
  if not ok then return false, CODE, why end
  ok, why = subsets.load(prepared.key, name, prepared.subsets)
  if not ok then return false, CODE, why end
  prepared.subsets = prepared.subsets ~= nil
  upstreams.set(prepared.key, { transport = {}, display = name }, prepared.peer_count)
  known[name] = prepared
  return true
end

function backends.drop(name)
  known[name] = nil
  worker.table:remove_peers(key_of(name))
  upstreams.remove(key_of(name))
  subsets.load(key_of(name), name, nil)
end

--- Names of all that are in force here, in order.
function backends.names()
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Alternatives of a backend that could serve. Names that nobody has posted yet, and those without peers, are passed over.
local function alternatives_of(primary)
  local list = {}
  for _, name in ipairs(primary.alternatives) do
    local one = known[name]
    if one and one ~= primary and one.peer_count > 0 then list[#list + 1] = one end
  end
  return list
end

--- Backend and place of the session that the client brings, among a backend and its alternatives.
local function of_session(primary, alternatives)
  local session = primary.session
  local place, digest
  if session then
    place, digest = affinity.brought(session)
    if digest == primary.digest then return primary, place end
  end
  for _, one in ipairs(alternatives) do
    -- Without affinity of its own, an alternative is in the session of the backend it stands for.
    if not session and one.session then place, digest = affinity.brought(one.session) end
    if digest == one.digest then return one, place end
  end
  return nil
end

--- A place of the ring by lot.
local function draw()
  return tohex(bit.tobit(worker.random()))
end

--- For a request with a session: the hash to pick with, or nil, and what is to be done when it has its peer. `is_known`: the
-- client has brought the session, so that it needs no cookie.
local function pick_by_session(chosen, session, place, is_known)
  if not chosen.ring then
    place = nil
  elseif not place or chosen.places and not chosen.places[place] then
    -- New, or its peer has left. Without a place it goes round robin, and the place is that of the peer.
    is_known = false
    place = not chosen.places and draw() or nil
  end
  local function after(record, moved)
    if moved and session.moves then
      affinity.give(session, chosen.ring and affinity.place(record.peer.id), chosen.digest)
    elseif not moved and not is_known then
      affinity.give(session, place or chosen.ring and affinity.place(record.peer.id), chosen.digest)
    end
  end
  return place and tonumber(place, 16), after
end

local function hash_of(chosen)
  if not chosen.hash_key then return nil end
  local key = hash_key.evaluate(chosen.hash_key)
  -- All requests without a key would meet at one peer.
  return key ~= "" and ngx.crc32_long(key) or nil
end

local function name_alternative(name)
  ngx.var.proxy_alternative_upstream_name = name
end

local resolve_others = by_name.resolve

--- For `by_name`: key of the upstream, hash to pick with or nil, and what is to be called when the peer is known.
function by_name.resolve(name)
  local primary = known[name]
  if not primary then return resolve_others(name) end
  local chosen, place, is_known
  if #primary.alternatives == 0 then
    if primary.session then
      chosen, place = of_session(primary, primary.alternatives)
    end
    is_known = chosen ~= nil
    chosen = primary
  else
    local alternatives = alternatives_of(primary)
    chosen, place = of_session(primary, alternatives)
    is_known = chosen ~= nil
    chosen = chosen or canary.choose(alternatives) or primary
    -- The configuration may not have the variable.
    if chosen ~= primary then pcall(name_alternative, chosen.name) end
  end
  local session = primary.session or chosen.session
  if session then
    local hash, after = pick_by_session(chosen, session, place, is_known)
    return chosen.key, hash, after
  end
  local hash = hash_of(chosen)
  if hash and chosen.subsets then return subsets.owner(chosen.key, hash) or chosen.key end
  return chosen.key, hash
end

return backends
