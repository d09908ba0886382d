--- The control endpoint: how the controller speaks with NGINX. On a unix socket in a folder of mode 0700, or on loopback.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local answer = require "balancer.control.answer"
local state = require "balancer.control.state"
local token = require "balancer.control.token"

local control = {}

--- By path and method.
local endpoints = {
  ["/state"] = { GET = state.get, POST = state.post },
}

--- Adds an endpoint: functions by method, which answer the request. All are for who shows the token only, `open` aside.
-- With `open_reads`, GET does without it on the unix socket, whose folder is the controller's own.
function control.on(path, methods)
  endpoints[path] = methods
end

--- Reads the token, in `init_by_lua`.
function control.open(token_file)
  token.read(token_file)
end

--- Answers a request; to be called in the content phase of the control server.
function control.handle()
  local endpoint = endpoints[ngx.var.uri]
  if not endpoint then return answer.refuse(ngx.HTTP_NOT_FOUND, "STATE_NOT_FOUND", "there is nothing at this path") end
  local method = endpoint[ngx.req.get_method()]
  if not method then
    ngx.header["Allow"] = endpoint.GET and endpoint.POST and "GET, POST" or endpoint.GET and "GET" or "POST"
    return answer.refuse(ngx.HTTP_NOT_ALLOWED, "STATE_METHOD", "this path has other methods")
  end
  local is_open = endpoint.open or endpoint.open_reads and method == endpoint.GET and ngx.var.remote_addr == "unix:"
  if not is_open and not token.is_shown() then
    return answer.refuse(ngx.HTTP_UNAUTHORIZED, "STATE_TOKEN", "the token is missing or wrong")
  end
  return method()
end

return control
