--- What the core may ask of the request at hand, see balancer.core.context.
local ngx = ngx or njt

local get_request = require("resty.core.base").get_request
local value_of = require("balancer.request_headers").value

local facts = {}

function facts:client_address()
  return ngx.var.remote_addr
end

function facts:client_port()
  return ngx.var.remote_port
end

function facts:method()
  return ngx.var.request_method
end

function facts:protocol()
  return ngx.var.server_protocol
end

--- `name` in lower case. One that was sent several times is joined.
function facts:header(name)
  return value_of(get_request(), name)
end

return facts
