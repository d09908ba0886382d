--- The header filter of the internal locations: what a decision changes in the answer of an upstream, and the session cookie.
local ngx = ngx or njt
local headers = require "balancer.headers"
local requests = require "balancer.requests"
local session_cookie = require "balancer.session_cookie"

local respond = {}

function respond.run()
  local record = requests.current()
  if not record or record.failure then return end
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

return respond
