--- The balancer phase: which peer NGINX connects to, and whether another one is tried after a failure.
local ngx = ngx or njt
local balancer = require "ngx.balancer"
local body = require "balancer.body"
local requests = require "balancer.requests"
local queue = require "balancer.queue"
local worker = require "balancer.worker"
local by_name = require "balancer.by_name"
local milliseconds = require "balancer.milliseconds"

local match = string.match
local set_current_peer, set_more_tries, set_timeouts = balancer.set_current_peer, balancer.set_more_tries, balancer.set_timeouts
local get_last_failure = balancer.get_last_failure
local current = requests.current

local balance = {}

local TIMEOUT = 504
local TOO_LARGE = 413
local NO_TIME = "-"

--- The value of the attempt before this one, of a variable that has one for each. This one is among them
-- already, without a value.
local function before(values)
  return values and match(values, "([^, :]+)[, :]+[^, :]*$") or NO_TIME
end

--- Points NGINX to the peer at hand. What comes back later decides whether this was the last try.
local function connect(record)
  local upstream = record.upstream
  record.attempts = record.attempts + 1
  record.asked_at, record.answered_at = milliseconds(), false
  if record.tried_peers then record.tried_peers[record.attempts] = record.peer end
  local ok, why = set_current_peer(record.peer.id)
  if not ok then
    ngx.log(ngx.ERR, "a peer can't be used: ", why)
    return ngx.exit(ngx.ERROR)
  end
  if upstream.has_timeouts then set_timeouts(upstream.connect_timeout, upstream.send_timeout, upstream.read_timeout) end
  record.granted = upstream.retries
    and (upstream.most_tries == 0 or record.attempts < upstream.most_tries)
    and upstream.peer_count > #record.tried + 1
  if record.granted then set_more_tries(1) end
end

--- Ends the request with a page of the proxy for `status`.
local function fail(record, status)
  record.failure = status
  return ngx.exit(ngx.ERROR)
end

--- What the last attempt failed for: true if it was the answer of the peer, else false and whether it was connected.
local function last_answer()
  if before(ngx.var.upstream_header_time) ~= NO_TIME then return true end
  return false, before(ngx.var.upstream_connect_time) ~= NO_TIME
end

--- Takes another peer in the place of the one that has failed; false if there is none.
local function next_peer(record)
  local key = record.upstream.key
  worker.table:peer_done(record.token, true, worker.now())
  queue.place_free(key)
  local tried = record.tried
  tried[#tried + 1] = record.token
  record.token = false
  local choice = worker.table:pick_peer(key, record.hash, tried, worker.random(), worker.now(), {})
  if not choice then return false end
  record.token, record.peer, record.session, record.moved = choice.token, choice.peer, choice.session, true
  if record.picked then record.picked(record, true) end
  return true
end

local function try_another(record)
  local upstream = record.upstream
  if not record.tried_peers then
    record.special = true
    record.tried_peers = { record.peer }
  end
  local _, status = get_last_failure()
  -- NGINX comes back by itself where a kept connection broke before an answer: that says nothing about the peer.
  if not record.granted then return connect(record) end
  local answered, connected = last_answer()
  if not answered then
    local listed = status == TIMEOUT and upstream.on_timeout or status ~= TIMEOUT and upstream.on_error
    if not listed then return fail(record, status) end
    -- It may have been a kept connection: the same peer is asked once more before that counts as a failure.
    if status ~= TIMEOUT and connected and not record.suspected then
      record.suspected = true
      return connect(record)
    end
  end
  if upstream.most_time > 0 and ngx.now() - record.first_try >= upstream.most_time then return fail(record, status) end
  if not next_peer(record) then return fail(record, status) end
  return connect(record)
end

--- Chooses the peer of the next attempt.
function balance.run()
  local record = current()
  if not record or not record.upstream then
    record = by_name.choose(record)
    if not record then return ngx.exit(ngx.ERROR) end
  end
  if record.attempts == 0 then
    if record.body_limit and not body.is_within(record.body_limit) then return fail(record, TOO_LARGE) end
    if record.upstream.most_time > 0 then record.first_try = ngx.now() end
    return connect(record)
  end
  return try_another(record)
end

return balance
