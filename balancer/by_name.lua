--- Locations of somebody else's configuration that set `$proxy_upstream_name` and pass to `upstream_balancer`: the name is the
-- key of an upstream, or what `by_name.resolve` knows.
local get_request = require("resty.core.base").get_request
local follower = require "balancer.state.follower"
local requests = require "balancer.requests"
local upstreams = require "balancer.upstreams"
local variables = require "balancer.variables"
local worker = require "balancer.worker"

local NAME = variables.name "proxy_upstream_name"
--- What the core has chosen last.
local choice = {}

local by_name = {}

--- Key of the upstream that a name stands for, the hash that a peer is picked with or nil, and a function of the record and
-- `moved` (a retry has taken another peer), or nil, which is called when the peer is known. Another module may put its own in place.
function by_name.resolve(name)
  return name
end

--- A record for the request at hand, with a peer; nil where there is none, after the failure was noted for the error page.
function by_name.choose(record)
  follower.catch_up()
  record = record or requests.begin()
  record.by_name = true
  local name = variables.text(get_request(), NAME)
  local key, hash, picked
  if name then key, hash, picked = by_name.resolve(name) end
  local upstream = key and upstreams.get(key)
  if not upstream or not worker.table:pick_peer(key, hash, record.tried, worker.random(), worker.now(), choice) then
    record.special, record.failure = true, 503
    return nil
  end
  record.upstream, record.token, record.peer, record.hash = upstream, choice.token, choice.peer, hash or false
  if picked then
    record.special, record.picked = true, picked
    picked(record, false)
  end
  return record
end

return by_name
