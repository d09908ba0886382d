--- What one worker has for itself for a while, among all workers: a name in the shared dict.
local ngx = ngx or njt
local workers = require "balancer.state.workers"

local dict = ngx.shared.njet_kic_state

local claim = {}

--- Seconds after which a claim is nobody's, whatever its holder does.
local LONGEST = 30

--- True if this worker has `name` now, and nobody else until `release` or for half a minute.
function claim.take(name)
  local holder = dict:get(name)
  if holder and not workers.is_alive(holder) then dict:delete(name) end
  return dict:add(name, workers.me(), LONGEST)
end

--- Half a minute more, for whoever has it.
function claim.keep(name)
  dict:expire(name, LONGEST)
end

--- For whoever has it.
function claim.release(name)
  dict:delete(name)
end

return claim
