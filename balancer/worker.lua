--- The core of this worker, and the clock and randomness that it is asked with.
local ngx = ngx or njt
-- Declares a function of the Lua module.
require "resty.core.time"
local native = require "balancer.core.native"
local request_ids = require "balancer.request_ids"
local RoutingTable = require "balancer.core.routing_table"
local record = require "balancer.state.record"
local store = require "balancer.state.store"
local variables = require "balancer.variables"

local random, now = math.random, variables.native "now"

local worker = {
  --- The RoutingTable; nil before `open`.
  table = nil,
}

--- Pages of 64 KiB that a core may have: 2 GiB.
local MOST_PAGES = 32768
local TOP = 4294967296

--- Puts back what stands in the shared state, after the core has trapped and a new one took its place.
local function restore()
  local pieces = require "balancer.pieces"
  for _, kind in ipairs { record.UPSTREAM, record.PEER_STATES, record.SHARD, record.BACKEND } do
    for _, name in ipairs(store.names()) do
      local of, key = name:match("^(%d+):(.*)$")
      local _, content = store.piece(name)
      if tonumber(of) == kind and content then pieces.put_back(kind, key, content) end
    end
  end
end

--- Loads the native core; in `init_worker`. `library`: its path.
function worker.open(library)
  local loaded, why = native.load(library)
  if not loaded then error("the native core can't be loaded: " .. why) end
  local core
  core, why = RoutingTable.new(loaded, { pages = MOST_PAGES, restore = restore })
  if not core then error("the native core does not start: " .. why) end
  worker.table = core
  variables.open(loaded)
  local source
  source, why = request_ids.open(loaded)
  if not source then ngx.log(ngx.WARN, "ids of requests are made by NGINX, more slowly: ", why) end
  math.randomseed(ngx.worker.pid() + ngx.now() * 1000)
end

--- Milliseconds of any origin. NGINX's own clock, which stands still while a phase runs.
function worker.now()
  return now() * 1000
end

--- A number below 2^32. Of what is behind its point nothing is looked at where it counts: the core takes whole numbers.
function worker.random()
  return random() * TOP
end

return worker
