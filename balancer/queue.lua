--- Requests that wait because every peer that they could go to is busy: NGINX's `queue`. One for each upstream that has one, in
-- each worker, first come first served.
local ngx = ngx or njt
local semaphore = require "ngx.semaphore"

local queue = {}

--- By upstream: size, timeout (seconds), first and last (numbers of entries), waiting (entries by number), length, counters.
local queues = {}

--- The settings of an upstream as they are now: {size, timeout (ms)}; nil where nobody may wait any more.
function queue.set(upstream, settings)
  local one = queues[upstream]
  if not settings or settings.size == 0 then
    if not one then return end
    queues[upstream] = nil
    one.closed = true
    for number = one.first, one.last do
      local entry = one.waiting[number]
      if entry then entry.signal:post(1) end
    end
  elseif not one then
    queues[upstream] = {
      size = settings.size,
      timeout = settings.timeout / 1000,
      first = 1,
      last = 0,
      waiting = {},
      length = 0,
      timeouts = 0,
      overflows = 0,
    }
  else
    one.size, one.timeout = settings.size, settings.timeout / 1000
  end
end

--- Offers a place to whoever waits first.
local function offer(one)
  while one.first <= one.last do
    local entry = one.waiting[one.first]
    if entry then
      if not entry.asked then
        entry.asked = true
        entry.signal:post(1)
      end
      return
    end
    one.first = one.first + 1
  end
end

--- A place at a peer of the upstream was given back, or its peers have changed.
function queue.place_free(upstream)
  local one = queues[upstream]
  if one and one.length > 0 then offer(one) end
end

--- True if somebody waits already: who comes now goes behind.
function queue.is_waited(upstream)
  local one = queues[upstream]
  return one ~= nil and one.length > 0
end

local function leave(one, number)
  if not one.waiting[number] then return end
  one.waiting[number] = nil
  one.length = one.length - 1
end

--- Waits until `try()` answers something else than false, and answers that; nil if there is no queue, no place in it, or the
-- time is over. Yields. `record` notes where the request waits, for `abandon`.
function queue.wait(upstream, record, try)
  local one = queues[upstream]
  if not one then return nil end
  if one.length >= one.size then
    one.overflows = one.overflows + 1
    return nil
  end
  local entry = { signal = semaphore.new() }
  local number = one.last + 1
  one.last = number
  one.waiting[number] = entry
  one.length = one.length + 1
  record.special = true
  record.waits_in, record.waits_as = one, number
  local deadline = ngx.now() + one.timeout
  local result
  repeat
    local left = deadline - ngx.now()
    local called = left > 0 and entry.signal:wait(left)
    if not called then
      if not one.closed then one.timeouts = one.timeouts + 1 end
      break
    end
    entry.asked = false
    result = try(one.closed)
  until result or one.closed
  leave(one, number)
  record.waits_in = nil
  -- Another place may be free, and whoever is next has not been asked while this one was.
  offer(one)
  return result or nil
end

--- The client has left while its request waited.
function queue.abandon(record)
  local one = record.waits_in
  if not one then return end
  record.waits_in = nil
  leave(one, record.waits_as)
  offer(one)
end

--- {upstream, length, timeouts, overflows} of each queue.
function queue.status()
  local list = {}
  for upstream, one in pairs(queues) do
    list[#list + 1] = { upstream = upstream, length = one.length, timeouts = one.timeouts, overflows = one.overflows }
  end
  return list
end

return queue
