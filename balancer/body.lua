--- Limits of request bodies. A length that is stated is compared at once. A body without one is read first, in an internal
-- location whose own limit is the next power of two: NGINX's `client_max_body_size` takes no variable, so this bounds what is
-- read, and the exact limit is compared afterwards.
local ngx = ngx or njt

local body = {}

local FEWEST_BITS, MOST_BITS = 10, 40
--- The Lua module of OpenNJet reads no body of HTTP/2 that has no stated length.
local READS_HTTP2 = njt == nil

--- True if the request states more than `limit` bytes; else the location that has to read it first, if any, and true if it can only be
-- compared with the limit by `is_within`, once it was read for the peer.
function body.check(limit)
  local length = ngx.var.content_length
  if length then
    return tonumber(length) > limit
  end
  -- On HTTP/2 nothing else tells a request that has a body, whatever its method.
  local http2 = ngx.var.server_protocol == "HTTP/2.0"
  if http2 and not READS_HTTP2 then return false, nil, true end
  if ngx.var.http_transfer_encoding or http2 then
    local bits = math.max(FEWEST_BITS, math.ceil(math.log(limit) / math.log(2)))
    return false, bits <= MOST_BITS and "@body_" .. bits or nil
  end
  return false
end

local function size()
  local data = ngx.req.get_body_data()
  if data then return #data end
  local file = ngx.req.get_body_file()
  if not file then return 0 end
  local handle = io.open(file, "rb")
  local bytes = handle and handle:seek("end") or 0
  if handle then handle:close() end
  return bytes
end

--- True if what was read of the body is within `limit`.
function body.is_within(limit)
  return size() <= limit
end

--- Reads the whole body; true if it is within `limit`. Yields.
function body.read(limit)
  ngx.req.read_body()
  return body.is_within(limit)
end

return body
