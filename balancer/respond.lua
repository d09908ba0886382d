--- The header filter of the internal locations: what a decision changes in the answer of an upstream, and the session cookie.
local ngx = ngx or njt
local answers = require "balancer.answers"
local error_pages = require "balancer.error_pages"
local headers = require "balancer.headers"
local requests = require "balancer.requests"
local session_cookie = require "balancer.session_cookie"

local respond = {}

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

function respond.run()
  local record = requests.current()
  if not record or record.failure then return end
  if record.pages and error_pages.find(record.pages, ngx.status) then return put_page(record) end
  local decision = record.decision
  local cookie = record.upstream and record.upstream.cookie
  -- Only an answer of a peer carries them; a page of the proxy has another location.
  if cookie then
    local session = record.moved and record.session or decision and decision.session
    if session and (record.moved or cookie.renewed or decision and decision.new_session) then
      headers.append("Set-Cookie", session_cookie.text(cookie, session))
    end
  end
  if decision and decision.headers then headers.change_answer(decision.headers, ngx.status) end
end

--- The body filter of the internal locations.
function respond.replace()
  local record = requests.current()
  local body = record and record.page_body
  if not body then return end
  ngx.arg[1], ngx.arg[2] = body, true
end

return respond
