--- Requests under way in this worker: what `route` decided, for the phases after it.
--
-- Found by the address of NGINX's request. It stays the same from the first phase to the log phase, also where NGINX goes to
-- another location (an own error page, a named location), which wipes `ngx.ctx`. So nothing that is held for a request
-- (a place at a peer) can be forgotten on the way.
local bit = require "bit"
local ffi = require "ffi"
local base = require "resty.core.base"

local band, rshift = bit.band, bit.rshift
local cast = ffi.cast
-- A global is looked up in each trace.
local tonumber = tonumber
local get_request = base.get_request
local address = ffi.typeof("uintptr_t")

local requests = {}

--- Records by a part of the address, and whole addresses beside them: a Lua table that new keys come into all the time is
-- sorted anew all the time.
local PLACES = 4096
local address_at = ffi.new("double[?]", PLACES)
local record_at = {}
for i = 0, PLACES - 1 do record_at[i] = false end
--- Records by address, of requests whose place another one has.
local crowded = {}
--- Records that are free again, so that a request makes no garbage.
local free, free_count = {}, 0
local MOST_FREE = 1024

--- Address of NGINX's request at hand, and its place. A request stands where a pool begins: the last bits are the same in all.
local function here()
  local at = tonumber(cast(address, get_request()))
  return at, band(rshift(at, 4), PLACES - 1)
end

--- A record that nothing is noted in. What every request notes is there from the beginning, false where there is nothing: a table that
-- fields come into and go from is laid out anew time and again.
local function new_record()
  return {
    attempts = 0,
    tried = {},
    https = false,
    random = 0,
    decision = false,
    decided = false,
    absolute = false,
    upstream = false,
    token = false,
    peer = false,
    hash = false,
    granted = false,
    special = false,
    by_name = false,
    pages = false,
    failure = false,
    body_limit = false,
    waits_in = false,
    tried_peers = false,
    asked_at = false,
    answered_at = false,
  }
end

--- Begins a record for the request at hand. Fields that matter are set by `route`.
function requests.begin()
  local record
  if free_count > 0 then
    record = free[free_count]
    free_count = free_count - 1
  else
    record = new_record()
  end
  local at, place = here()
  if address_at[place] == 0 or address_at[place] == at then
    address_at[place], record_at[place] = at, record
  else
    crowded[at] = record
  end
  return record
end

--- The record of the request at hand; nil where `route` was not asked.
function requests.current()
  local at, place = here()
  if address_at[place] == at then return record_at[place] end
  return crowded[at]
end

--- Takes the record of the request at hand out; it is to be given to `recycle` after its last use.
function requests.finish()
  local at, place = here()
  if address_at[place] == at then
    address_at[place] = 0
    return record_at[place]
  end
  local record = crowded[at]
  if record then crowded[at] = nil end
  return record
end

function requests.recycle(record)
  if free_count >= MOST_FREE then return end
  if record.attempts > 1 or record.special then
    -- Whatever else was noted of an unusual request is not for the next one.
    record = new_record()
  else
    record.attempts, record.upstream, record.token, record.peer, record.decided = 0, false, false, false, false
    record.by_name = false
  end
  free_count = free_count + 1
  free[free_count] = record
end

return requests
