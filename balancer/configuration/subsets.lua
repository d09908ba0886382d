--- The subset form of a hash: peers are cut into subsets of a size, a key owns a subset, and any of its peers serves. A subset is
-- on the ring by its first peer.
local peer_source = require "balancer.core.peer_source"
local upstreams = require "balancer.upstreams"
local worker = require "balancer.worker"

local subsets = {}

--- As ingress-nginx has it, where no size is given.
local DEFAULT_SIZE = 3
local NONE_TRIED = {}

--- By key of the upstream, what is loaded: `{ring, numbers (by id of the first peer), count}`.
local loaded = {}

local function subset_key(key, number)
  return key .. "#" .. number
end

--- Peers of each subset. Their order is that of their ids, so that it does not matter in which order they were posted, and the
-- last subset is filled up from the beginning.
local function cut(peers, size)
  local sorted, seen = {}, {}
  for _, peer in ipairs(peers) do
    local id = peer_source.id(peer.address, peer.port)
    if not seen[id] then
      seen[id] = true
      sorted[#sorted + 1] = { address = peer.address, port = peer.port, id = id }
    end
  end
  table.sort(sorted, function(a, b) return a.id < b.id end)
  size = math.min(size, #sorted)
  local list = {}
  for first = 0, #sorted - 1, math.max(size, 1) do
    local subset = {}
    for i = 0, size - 1 do subset[i + 1] = sorted[(first + i) % #sorted + 1] end
    list[#list + 1] = subset
  end
  return list
end

--- Compiles the subsets of an upstream; nil and what is wrong. `size`: nil or 0 for the default.
function subsets.prepare(key, display, peers, size)
  local list = cut(peers, size and size > 0 and size or DEFAULT_SIZE)
  local prepared = { images = {}, numbers = {}, counts = {} }
  local heads = {}
  for number, subset in ipairs(list) do
    heads[number] = subset[1]
    prepared.numbers[subset[1].id] = number
    prepared.counts[number] = #subset
    local image, why = peer_source.compile(worker.table, {
      key = subset_key(key, number), display = display, method = peer_source.RANDOM, peers = subset,
    })
    if not image then return nil, why end
    prepared.images[number] = image
  end
  local why
  prepared.ring, why = peer_source.compile(worker.table, {
    key = subset_key(key, "ring"), display = display, method = peer_source.RING, peers = heads,
  })
  if not prepared.ring then return nil, why end
  return prepared
end

local function remove(key, from)
  for number = from, loaded[key] and loaded[key].count or 0 do
    worker.table:remove_peers(subset_key(key, number))
    upstreams.remove(subset_key(key, number))
  end
end

--- Puts subsets in force, or nil: takes those away that were. True, or nil and what is wrong.
function subsets.load(key, display, prepared)
  if not prepared then
    remove(key, 1)
    if loaded[key] then worker.table:remove_peers(subset_key(key, "ring")) end
    loaded[key] = nil
    return true
  end
  for number, image in ipairs(prepared.images) do
    local ok, why = worker.table:load_peers(image)
    if not ok then return nil, why end
    upstreams.set(subset_key(key, number), { transport = {}, display = display }, prepared.counts[number])
  end
  local ok, why = worker.table:load_peers(prepared.ring)
  if not ok then return nil, why end
  remove(key, #prepared.images + 1)
  loaded[key] = { numbers = prepared.numbers, count = #prepared.images }
  return true
end

--- Key of the upstream of the subset that owns a hash; nil where there is none.
function subsets.owner(key, hash)
  local of = loaded[key]
  if not of then return nil end
  local core, now = worker.table, worker.now()
  local choice = core:pick_peer(subset_key(key, "ring"), hash, NONE_TRIED, worker.random(), now, {})
  if not choice then return nil end
  core:peer_done(choice.token, false, now)
  return subset_key(key, of.numbers[choice.peer.id])
end

return subsets
