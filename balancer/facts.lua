--- What the core may ask of the request at hand, see balancer.core.context.
local ngx = ngx or njt

local concat = table.concat

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
  local value = ngx.req.get_headers(0)[name]
  if type(value) == "table" then return concat(value, name == "cookie" and "; " or ", ") end
  -- A header without a value.
  if value == true then return "" end
  return value
end

return facts
