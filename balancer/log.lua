--- The log phase: gives back what is still held for the request, and counts it.
local ngx = ngx or njt
local base = require "resty.core.base"
-- Declare functions of the Lua module.
require "resty.core.misc"
require "resty.core.request"
require "resty.core.time"
local count = require "balancer.count"
local milliseconds = require "balancer.milliseconds"
local queue = require "balancer.queue"
local requests = require "balancer.requests"
local RoutingTable = require "balancer.core.routing_table"
local variables = require "balancer.variables"
local worker = require "balancer.worker"

-- Functions by names of their own: a field of a module is looked up by each request.
local gmatch = string.gmatch
local var = ngx.var
local now_of, start_of, status_of = variables.native "now", variables.native "req_start_time", variables.native "get_resp_status"
local class_of, count_request, counts_of_peer, count_last_attempt = count.class_of, count.request, count.peer, count.last_attempt
local finish, recycle = requests.finish, requests.recycle
local peer_done = RoutingTable.peer_done
local get_request, number_of, numbers_of = base.get_request, variables.number, variables.numbers
local SIZES = variables.list("request_length", "bytes_sent")
local RESPONSE_TIME = variables.name "upstream_response_time"

local log = {}

--- The client has left before an answer.
local NO_ANSWER = 499

--- Values of a variable that has one for each attempt, as numbers; 0 for what is not known.
local function each(values, into)
  local number = 0
  for value in gmatch(values or "", "[^, :]+") do
    number = number + 1
    into[number] = tonumber(value) or 0
  end
  return number
end

--- True if the last attempt counts against its peer: it broke, or was answered with a status that next-upstream lists.
local function has_failed(record, status)
  if status < 500 and not record.special then return false end
  local last = 0
  for value in gmatch(var.upstream_status or "", "[^, :]+") do last = tonumber(value) or 0 end
  local header = var.upstream_header_time
  local answered = header and header:sub(-1) ~= "-"
  if answered then return record.upstream.statuses[last] == true end
  -- The client may have left, too.
  return last == 502 or last == 504
end

--- Seconds that the only attempt of a request took, as `$upstream_response_time` has them.
local function response_time(record, r)
  local now = milliseconds()
  -- NGINX took the time between these two, which are the same: it has not to be asked, which costs more than all else here.
  if now and record.answered_at == now then return (now - record.asked_at) / 1000 end
  return number_of(r, RESPONSE_TIME)
end

local function count_attempts(record, r, class, received, sent, seconds, now)
  local upstream = record.upstream
  local key = upstream.key
  local counts = counts_of_peer(key, record.peer.id)
  if not record.special then
    count_last_attempt(counts, class, received, sent, seconds, response_time(record, r), now)
    return
  end
  local statuses, times = {}, {}
  local number = each(var.upstream_status, statuses)
  each(var.upstream_response_time, times)
  local last = record.attempts
  for i = 1, last - 1 do
    local peer = record.tried_peers[i]
    count.attempt(counts_of_peer(key, peer.id), class_of(statuses[i] or 0), times[i] or 0, now)
  end
  count_last_attempt(counts, class, received, sent, seconds, number >= last and times[last] or seconds, now)
end

--- Ends a request.
function log.run()
  local record = finish()
  local r = get_request()
  local status = status_of(r)
  if status == 0 then status = NO_ANSWER end
  local now = now_of()
  local seconds = now - start_of(r)
  if seconds < 0 then seconds = 0 end
  local sizes = numbers_of(r, SIZES)
  local received, sent = sizes[0], sizes[1]
  local origin = record and record.decided
  local class = class_of(status)
  count_request(origin and origin.host, class, received, sent, seconds, now)
  if not record then return end
  if record.waits_in then queue.abandon(record) end
  local upstream = record.upstream
  local token = record.token
  if token then
    peer_done(worker.table, token, record.attempts > 0 and has_failed(record, status), now * 1000)
    if upstream and upstream.queued then queue.place_free(upstream.key) end
  end
  if upstream and record.attempts > 0 and record.peer then count_attempts(record, r, class, received, sent, seconds, now) end
  recycle(record)
end

return log
