--- What one worker has for itself for a while, among all workers: a name in the shared dict.
local ngx = ngx or njt

local dict = ngx.shared.njet_kic_state

local claim = {}

--- Seconds after which a claim is nobody's, whatever its holder does.
local LONGEST = 30

local function me()
  return (ngx.worker.id() or "agent") .. " " .. ngx.worker.pid()
end

--- True if this worker has `name` now, and nobody else until `release` or for half a minute.
function claim.take(name)
  local holder = dict:get(name)
  if holder then
    local worker, pid = string.match(holder, "^(%S+) (%d+)$")
    local said = dict:get("w:" .. worker)
    -- Somebody else has the place of the worker that held it: it has died.
    if said and string.match(said, "^%d+") ~= pid then dict:delete(name) end
  end
  return dict:add(name, me(), LONGEST)
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
