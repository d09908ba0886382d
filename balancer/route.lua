--- The routing phase: the core decides what becomes of a request, and NGINX is told.
local ngx = ngx or njt
local base = require "resty.core.base"
local answers = require "balancer.answers"
local body = require "balancer.body"
local facts = require "balancer.facts"
local follower = require "balancer.state.follower"
local headers = require "balancer.headers"
local queue = require "balancer.queue"
local request_headers = require "balancer.request_headers"
local request_ids = require "balancer.request_ids"
local requests = require "balancer.requests"
local RoutingTable = require "balancer.core.routing_table"
local upstreams = require "balancer.upstreams"
local variables = require "balancer.variables"
local worker = require "balancer.worker"

local find, gsub, match = string.find, string.gsub, string.match
local var = ngx.var
local get_request = base.get_request
local find_variable, find_all, text_of = variables.find, variables.find_all, variables.text
local catch_up = follower.catch_up
local begin, upstream_of = requests.begin, upstreams.get
local new_decision, decide_bytes = RoutingTable.new_decision, RoutingTable.decide_bytes
local now, random = worker.now, worker.random
local next_id, ID_LENGTH, set_variable = request_ids.next, request_ids.LENGTH, variables.set

local route = {
  --- Bytes of a body where an upstream sets no limit; 0: any number.
  body_limit = 0,
  --- True where the access log wants to know what decided.
  logs = false,
}

--- Characters of a target; more is 414.
local LONGEST_TARGET = 8192
local SLASH, SPACE = 47, 32

local HOST_AND_TARGET = variables.list("http_host", "request_uri")
local LINE, ID = variables.name "request", variables.name "njet_id"
--- What the client says with X-Request-ID and with Connection.
local said_by_client = request_headers.pair("x-request-id", "connection")

--- The target of a request line in absolute form; nil for any other. NGINX leaves the host out of `$request_uri`, which then may
-- begin with `?`. With HTTP/1 it is a part of the line, and of all targets only those in absolute form have no space before that part.
local function absolute_target(r, target)
  if target ~= nil and target[-1] == SPACE then return nil end
  local line, length = find_variable(r, LINE)
  -- Most methods have three or four letters.
  if length > 5 and (line[3] == SPACE and line[4] == SLASH or line[4] == SPACE and line[5] == SLASH) then return nil end
  local whole = match(text_of(r, LINE) or "", "^%S+ (%S+)")
  return whole and find(whole, "^%a[%w+.-]*://") and whole or nil
end

--- Host and target of a request, as they stand in NGINX's memory, each with its length.
local function host_and_target(r)
  local found = find_all(r, HOST_AND_TARGET)
  local host, target = found[0], found[1]
  return host.bytes, host.length, target.bytes, target.length
end

--- Decides a request by its host and target.
local function decide(record, r, host, host_length, target, target_length)
  local absolute = absolute_target(r, target)
  if absolute then target, target_length = absolute, #absolute end
  local decision, why = decide_bytes(worker.table, host, host_length, target, target_length, record.https, record.random, now(), facts,
    record.decision)
  if decision then
    record.absolute = absolute or false
    return decision
  end
  ngx.log(ngx.ERR, "a request could not be decided: ", why)
  return nil
end

--- What the peer is to be asked for.
local function target_of(record)
  return record.decision.target or record.absolute or var.request_uri
end

--- Gives a request an id of its own.
local function give_id(r)
  local id = next_id()
  if id then set_variable(r, ID, id, ID_LENGTH) end
end

--- Notes what was decided, for the phases after this.
local function take(record, decision)
  record.token = decision.token
  record.peer = decision.peer
  record.hash = decision.hash
end

local function decide_anew(record)
  local r = get_request()
  return decide(record, r, host_and_target(r))
end

--- Decides anew for a request that waits: false if every peer of that upstream is still busy.
local function try_again(record, upstream)
  return function(closed)
    local decision = decide_anew(record)
    if not decision then return "failed" end
    if decision.busy and decision.upstream_key == upstream and not closed then return false end
    return "decided"
  end
end

--- Waits for a place at a peer. True if the request was decided anew; false if it has to be answered 502.
local function wait(record, upstream)
  return queue.wait(upstream, record, try_again(record, upstream)) == "decided"
end

--- Settings that `location /` does not have lead to a location that has them.
local function go_on(record, upstream)
  local target = target_of(record)
  if upstream.grpc then
    if target ~= var.request_uri then
      local path, args = match(target, "^([^?]*)%??(.*)$")
      -- NGINX writes the escapes again; with the last argument it takes those of control characters, too.
      ngx.req.set_uri((gsub(path, "%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)), false, true)
      ngx.req.set_uri_args(args)
    end
  else
    var.njet_target = target
  end
  return ngx.exec(upstream.location)
end

local function proxy(record, decision)
  take(record, decision)
  local upstream = upstream_of(decision.upstream_key)
  if not upstream then return answers.page(503, record.pages) end
  record.upstream = upstream
  local reads
  local limit = upstream.body_limit or route.body_limit
  if limit > 0 then
    local too_large, later
    too_large, reads, later = body.check(limit)
    if too_large then return answers.refuse(413) end
    if later then record.special, record.body_limit = true, limit end
  end
  local r = get_request()
  local id, connection = said_by_client(r)
  if not id or id == "" then give_id(r) end
  local upgrade
  if connection and connection ~= "keep-alive" and connection ~= "close" then
    headers.drop_named(connection)
    upgrade = headers.upgrade_of(connection)
    if upgrade and (reads or (tonumber(var.content_length) or 0) > 0 or var.http_transfer_encoding) then upgrade = nil end
  end
  local changes = decision.headers
  if upstream.plain and not changes and not upgrade and not reads and not decision.target and not record.absolute then return end
  record.special = true
  -- NGINX makes a tunnel of any 101 where the client has sent the header, on HTTP/2 too, where it can't be one.
  if not upgrade and var.http_upgrade then ngx.req.clear_header("Upgrade") end
  if changes then headers.change_request(changes) end
  if upgrade then
    record.upgrades = true
    var.njet_upgrade = upgrade
    var.njet_connection = "upgrade"
  elseif upstream.keepalive == false then
    var.njet_connection = "close"
  end
  if reads then return ngx.exec(reads) end
  return go_on(record, upstream)
end

--- Notes what decided, and what stands for failures.
local function note(record, decision)
  record.decided = decision.origin
  local pages = decision.error_pages
  if pages and decision.action ~= "redirect" then
    record.special = true
    record.pages = pages
  elseif record.pages then
    record.pages = false
  end
end

local function act(record, decision)
  note(record, decision)
  if route.logs then
    local origin = decision.origin
    if origin then var.njet_resource, var.njet_path = origin.resource, origin.path end
    if decision.upstream then var.njet_upstream = decision.upstream end
  end
  local key = decision.upstream_key
  if key then
    local upstream = upstream_of(key)
    local queued = upstream and upstream.queued
    if queued and (decision.busy or decision.token and queue.is_waited(key)) then
      -- Nobody overtakes who waits.
      if decision.token then worker.table:peer_done(decision.token, false, now()) end
      if not wait(record, key) then
        record.special = true
        return answers.page(502, record.pages)
      end
      decision = record.decision
      note(record, decision)
    end
  end
  if decision.action == "proxy" then return proxy(record, decision) end
  -- The core could make nothing of the request.
  if decision.status == 400 and not decision.origin then return answers.refuse(400) end
  return answers.decided(decision)
end

--- Decides the request at hand; in the rewrite phase of `location /`. `https`: whether it came over TLS.
function route.run(https)
  catch_up()
  local record = begin()
  local r = get_request()
  local host, host_length, target, target_length = host_and_target(r)
  if host_length == 0 then
    local protocol = var.server_protocol
    -- HTTP/0.9 has no version at all.
    if not protocol or protocol == "" then return answers.page(505) end
    if protocol ~= "HTTP/1.0" then return answers.refuse(400) end
  end
  if target_length > LONGEST_TARGET then return answers.refuse(414) end
  local decision = record.decision
  if not decision then
    decision = new_decision()
    record.decision = decision
  end
  record.https = https
  record.random = random()
  if not decide(record, r, host, host_length, target, target_length) then return answers.page(500) end
  return act(record, decision)
end

--- Reads a body without a stated length; in the rewrite phase of the locations `@body_<bits>`.
function route.read_body()
  local record = requests.current()
  local upstream = record.upstream
  if not body.read(upstream.body_limit or route.body_limit) then return answers.refuse(413) end
  return go_on(record, upstream)
end

return route
