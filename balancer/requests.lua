--- Requests under way in this worker: what `route` decided, for the phases after it.
--
-- Found by the address of NGINX's request. It stays the same from the first phase to the log phase, also where NGINX goes to
-- another location (an own error page, a named location), which wipes `ngx.ctx`. So nothing that is held for a request
-- (a place at a peer) can be forgotten on the way.
local ffi = require "ffi"
local base = require "resty.core.base"

local cast = ffi.cast
local get_request = base.get_request
local address = ffi.typeof("uintptr_t")

local requests = {}

--- Records by address.
local under_way = {}
--- Records that are free again, so that a request makes no garbage.
local free, free_count = {}, 0
local MOST_FREE = 1024

--- Begins a record for the request at hand. Fields that matter are set by `route`.
function requests.begin()
  local record
  if free_count > 0 then
    record = free[free_count]
    free_count = free_count - 1
  else
    record = { attempts = 0, tried = {} }
  end
  under_way[tonumber(cast(address, get_request()))] = record
  return record
end

--- The record of the request at hand; nil where `route` was not asked.
function requests.current()
  return under_way[tonumber(cast(address, get_request()))]
end

--- Takes the record of the request at hand out; it is to be given to `recycle` after its last use.
function requests.finish()
  local key = tonumber(cast(address, get_request()))
  local record = under_way[key]
  if record then under_way[key] = nil end
  return record
end

function requests.recycle(record)
  if free_count >= MOST_FREE then return end
  if record.attempts > 1 or record.special then
    -- Whatever else was noted of an unusual request is not for the next one.
    record = { attempts = 0, tried = {} }
  else
    record.attempts, record.upstream, record.token, record.peer, record.hash = 0, nil, nil, nil, nil
    record.origin, record.granted, record.decided = nil, nil, nil
  end
  free_count = free_count + 1
  free[free_count] = record
end

return requests
