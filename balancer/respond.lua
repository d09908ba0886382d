--- The header filter: refuses answers of an upstream that NGINX can't pass on as one, and changes the others as the decision
-- says, the session cookie included.
local ngx = ngx or njt
local base = require "resty.core.base"
-- Declares a function of the Lua module.
require "resty.core.misc"
local answers = require "balancer.answers"
local error_pages = require "balancer.error_pages"
local headers = require "balancer.headers"
local milliseconds = require "balancer.milliseconds"
local requests = require "balancer.requests"
local session_cookie = require "balancer.session_cookie"
local variables = require "balancer.variables"

local http_version = ngx.req.http_version
local current, get_request, has_variable = requests.current, base.get_request, variables.find
local status_of = variables.native "get_resp_status"
local PEERS_UPGRADE = variables.name "upstream_http_upgrade"

local respond = {}

local SWITCHING = 101
local LEAST_STATUS, MOST_STATUS = 200, 599

--- Ends the request. NGINX has taken these for whole answers: what follows would reach the client as a body, or as the next
-- answer on its connection.
--   - an interim answer: NGINX does not wait for the final one
--   - a status that is none
--   - bytes that are no HTTP at all, which NGINX takes for HTTP/0.9 and would pass on as they are
local function refuse(record, is_http)
  record.special = true
  record.failure = 502
  ngx.log(ngx.ERR, "a peer gave no answer that can be passed on")
  -- A client that NGINX now takes for one of HTTP/0.9 would get the page without a head.
  return ngx.exit(is_http and 502 or ngx.ERROR)
end

--- Puts an error page of the object in the place of the peer's answer. Its body follows in `replace`; what the peer sends is read
-- to its end and dropped, so that the connection to it can go on.
local function put_page(record)
  error_pages.clear_head()
  local status, body, content_type = answers.for_status(record.pages, ngx.status)
  ngx.status = status
  local bodiless = status == 204 or status == 304
  if not bodiless then
    ngx.header["Content-Type"] = content_type
    ngx.header["Content-Length"] = #body
  end
  record.page_body = bodiless and "" or body
end

--- True where a client may leave HTTP. Of a location that names its upstream, the location says so: with the header that it sends on.
local function may_switch(record)
  if record.by_name then return ngx.var.http_upgrade ~= nil end
  return record.upgrades
end

function respond.run()
  local record = current()
  if not record or record.failure or record.attempts == 0 then return end
  record.answered_at = milliseconds()
  local status = status_of(get_request())
  -- HTTP/0.9 has no status, for which NGINX says 9.
  local is_common = status >= LEAST_STATUS and status <= MOST_STATUS
  local special = record.special
  if is_common and not special and not record.by_name then return end
  local is_http = is_common or http_version() ~= 0.9
  if not is_http or status > MOST_STATUS or status < LEAST_STATUS and not (status == SWITCHING and may_switch(record)) then
    return refuse(record, is_http)
  end
  -- About the connection to the peer; HTTP/2 clients break off over it. `location /` hides it by itself.
  if status ~= SWITCHING and has_variable(get_request(), PEERS_UPGRADE) then ngx.header["Upgrade"] = nil end
  if not special then return end
  if record.pages and error_pages.find(record.pages, status) then return put_page(record) end
  local decision = record.decision
  local cookie = record.upstream and record.upstream.cookie
  -- Only an answer of a peer carries them; a page of the proxy has another location.
  if cookie then
    local session = record.moved and record.session or decision and decision.session
    if session and (record.moved or cookie.renewed or decision and decision.new_session) then
      headers.append("Set-Cookie", session_cookie.text(cookie, session))
    end
  end
  if decision and decision.headers then headers.change_answer(decision.headers, status) end
end

--- The body filter of the internal locations.
function respond.replace()
  local record = requests.current()
  local body = record and record.page_body
  if not body then return end
  ngx.arg[1], ngx.arg[2] = body, true
end

return respond
