--- The body of a request, whole, wherever NGINX has put it.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt

local body = {}

--- The body, empty if there is none; nil if it can't be read.
function body.read()
  ngx.req.read_body()
  -- From here on the worker has the body, and what is made of it, in one go: the collector is not to wait as it does for requests, see
  -- state/follower.lua, which tells it to at its next look.
  collectgarbage("setpause", 200)
  local text = ngx.req.get_body_data()
  if text then return text end
  -- Larger than client_body_buffer_size.
  local path = ngx.req.get_body_file()
  if not path then return "" end
  local file = io.open(path, "rb")
  if not file then return nil end
  text = file:read("*a")
  file:close()
  return text
end

return body
