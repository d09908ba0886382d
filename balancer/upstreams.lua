--- How NGINX is to talk to the peers of each upstream: the settings that come beside a peer set, made ready for requests.
local count = require "balancer.count"
local queue = require "balancer.queue"
local session_cookie = require "balancer.session_cookie"
local worker = require "balancer.worker"

local upstreams = {}

--- Bits of the statuses for which another peer is tried, in the names of locations.
local STATUS_BITS = { http_502 = 1, http_503 = 2, http_504 = 4 }

local by_key = {}

local function seconds(milliseconds)
  return type(milliseconds) == "number" and milliseconds > 0 and milliseconds / 1000 or nil
end

--- The internal location that has the settings which Lua can't set for one request. The family of them is written by
-- controller/proxies/nginx/configuration.ts.
local function location_of(transport, reasons)
  local scheme = transport.protocol == "grpc" and "grpc" or "http"
  if transport.tls then scheme = scheme .. "s" end
  local buffering = scheme:sub(1, 4) == "http" and transport.buffering == false and "_unbuffered" or ""
  local mask = 0
  for name, bit in pairs(STATUS_BITS) do
    if reasons[name] then mask = mask + bit end
  end
  return "@" .. scheme .. buffering .. "_" .. mask .. (reasons.non_idempotent and "_any" or "")
end

--- `settings`: {transport, sessionCookie, queue, display} as the model has them; times in milliseconds.
-- `peer_count`: number of its peers, whatever their states.
function upstreams.set(key, settings, peer_count)
  local transport = settings.transport
  local listed = type(transport.nextUpstream) == "table" and transport.nextUpstream or { "error", "timeout" }
  local reasons = {}
  for _, name in ipairs(listed) do reasons[name] = true end
  local location = location_of(transport, reasons)
  local cookie = type(settings.sessionCookie) == "table" and session_cookie.read(settings.sessionCookie) or nil
  local connect, send, read = seconds(transport.connectTimeout), seconds(transport.sendTimeout), seconds(transport.readTimeout)
  by_key[key] = {
    key = key,
    display = settings.display,
    peer_count = peer_count,
    connect_timeout = connect,
    send_timeout = send,
    read_timeout = read,
    has_timeouts = (connect or send or read) ~= nil,
    keepalive = transport.keepalive ~= 0,
    -- Bytes; nil: the proxy's own limit, 0: none.
    body_limit = transport.clientMaxBodySize,
    on_error = reasons.error == true,
    on_timeout = reasons.timeout == true,
    statuses = { [502] = reasons.http_502, [503] = reasons.http_503, [504] = reasons.http_504 },
    retries = next(reasons) ~= nil,
    most_tries = transport.nextUpstreamTries or 0,
    most_time = (transport.nextUpstreamTimeout or 0) / 1000,
    cookie = cookie,
    grpc = transport.protocol == "grpc",
    location = location,
    -- True where `location /` does without a further location.
    plain = location == "@http_0" and cookie == nil and transport.keepalive ~= 0,
    queued = type(settings.queue) == "table" and (settings.queue.size or 0) > 0,
  }
  queue.set(key, type(settings.queue) == "table" and settings.queue or nil)
  count.keep_peers(key, worker.table)
  queue.place_free(key)
end

function upstreams.remove(key)
  by_key[key] = nil
  queue.set(key, nil)
  count.forget_upstream(key)
end

--- Peers of an upstream are others now: who waits for one looks again.
function upstreams.changed(key)
  queue.place_free(key)
end

function upstreams.get(key)
  return by_key[key]
end

return upstreams
