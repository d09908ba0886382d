--- Header changes of decisions, on requests and answers, and which names are about one connection only (RFC 9110 7.6.1, 11.7).
local ngx = ngx or njt

local find, gmatch, gsub, lower, match = string.find, string.gmatch, string.gsub, string.lower, string.match

local headers = {}

local function set(...)
  local names = {}
  for _, name in ipairs { ... } do names[name] = true end
  return names
end

--- An object can't set these: the proxy alone frames messages.
local FRAMING = set("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings", "te",
  "proxy-authenticate", "proxy-authorization", "proxy-authentication-info", "content-length", "trailer", "expect")
--- A client that lists one of these in Connection would take away what the upstream's safety rests on.
local PROTECTED = set("host", "content-length", "content-type", "authorization", "cookie", "x-forwarded-for",
  "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip", "x-request-id", "transfer-encoding",
  "keep-alive", "close", "upgrade")
--- What NGINX needs to read the request, or writes itself.
local KEPT = set("host", "content-length", "transfer-encoding", "connection", "upgrade")
--- Headers to the upstream whose values are variables of the internal locations.
local VARIABLES = {
  ["host"] = "njet_host",
  ["x-request-id"] = "njet_request_id",
  ["x-real-ip"] = "njet_real_ip",
  ["x-forwarded-for"] = "njet_forwarded_for",
  ["x-forwarded-proto"] = "njet_forwarded_proto",
  ["x-forwarded-host"] = "njet_forwarded_host",
  ["x-forwarded-port"] = "njet_forwarded_port",
  ["forwarded"] = "njet_forwarded",
}
--- Statuses that get headers of `add-response` without `always` (NGINX's add_header).
local PLAIN_STATUSES = { [200] = true, [201] = true, [204] = true, [206] = true, [301] = true, [302] = true, [303] = true,
  [304] = true, [307] = true, [308] = true }

--- A value that can stand in a header: control characters become a space.
function headers.value(value)
  if not find(value, "[%z\1-\8\10-\31\127]") then return value end
  return match(gsub(value, "[%z\1-\8\10-\31\127]+", " "), "^%s*(.-)%s*$")
end

local function is_settable(name)
  return not FRAMING[name] and find(name, "^[!#$%%&'*+%-.^_`|~%w]+$") ~= nil
end

--- Carries out what a decision says of the request's headers.
function headers.change_request(changes)
  for _, change in ipairs(changes) do
    if change.op == "drop-request" then
      for name in pairs(ngx.req.get_headers(0, true)) do
        if not KEPT[lower(name)] then ngx.req.clear_header(name) end
      end
      ngx.var.njet_forwarded = ""
      break
    end
  end
  for _, change in ipairs(changes) do
    local name = change.op == "set-request" and lower(change.name)
    if name and is_settable(name) then
      local value = headers.value(change.value)
      local variable = VARIABLES[name]
      if variable then
        ngx.var[variable] = value
      elseif value == "" then
        ngx.req.clear_header(name)
      else
        ngx.req.set_header(change.name, value)
      end
    end
  end
end

local function append(name, value)
  local before = ngx.header[name]
  if before == nil then
    ngx.header[name] = value
  elseif type(before) == "table" then
    before[#before + 1] = value
    ngx.header[name] = before
  else
    ngx.header[name] = { before, value }
  end
end
headers.append = append

--- Adds the headers that a decision asks for on an answer with `status`.
function headers.add_to_answer(changes, status)
  for _, change in ipairs(changes) do
    if change.op == "add-response" and (change.always or PLAIN_STATUSES[status]) and is_settable(lower(change.name)) then
      local value = headers.value(change.value)
      if value ~= "" then append(change.name, value) end
    end
  end
end

--- Carries out what a decision says of the headers of an upstream's answer.
function headers.change_answer(changes, status)
  for _, change in ipairs(changes) do
    if change.op == "hide-response" then
      ngx.header[change.name] = nil
    elseif change.op == "pass-response" then
      -- NGINX has hidden it; the upstream's own value is in a variable.
      local value = ngx.var["upstream_http_" .. gsub(lower(change.name), "-", "_")]
      if value then ngx.header[change.name] = value end
    end
  end
  headers.add_to_answer(changes, status)
end

--- Takes out what the client's Connection header binds to its own connection.
function headers.drop_named(connection)
  for token in gmatch(lower(connection), "[^,%s]+") do
    if not PROTECTED[token] then ngx.req.clear_header(token) end
  end
end

--- The protocol that a connection is to switch to; nil where there is none, or h2c, which would take the routes out of our
-- hands, or where it is a connection that can't switch.
function headers.upgrade_of(connection)
  if ngx.var.server_protocol ~= "HTTP/1.1" then return nil end
  if not find(lower(connection), "upgrade", 1, true) then return nil end
  local protocol = ngx.var.http_upgrade
  if not protocol or protocol == "" then return nil end
  for token in gmatch(lower(protocol), "[^,%s]+") do
    if token == "h2c" or token == "h2" then return nil end
  end
  return headers.value(protocol)
end

return headers
