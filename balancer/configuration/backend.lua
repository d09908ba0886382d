--- A backend as `/configuration/backends` takes it: the schema of ingress-nginx, each field checked. Fields that are not known are
-- passed over.
local cjson = require "cjson.safe"
local hash_key = require "balancer.configuration.hash_key"
local peer_source = require "balancer.core.peer_source"
local schema = require "balancer.configuration.schema"

local backend = {}

local text, whole, boolean = schema.text, schema.whole, schema.boolean
local LONG, SHORT = 4096, 256
local MOST_PORT = 65535
local MOST_SECONDS = 2147483647

local function matches(pattern, says)
  return function(value)
    if value:find(pattern) then return true end
    return false, says
  end
end

--- Empty counts as not given.
local function optional(check)
  return function(value)
    if value == "" then return true end
    return check(value)
  end
end

local is_name = matches("^[%w._-]+$", "must be letters, digits and ._-")
local is_token = matches("^[%w!#$%%&'*+.^_`|~-]+$", "must be the name of a cookie or header")
local is_attribute = matches("^[^;,]*$", "must not have a semicolon or comma")

local function is_address(value)
  if peer_source.address(value) then return true end
  return false, "must be an IP address: names are not resolved"
end

local function is_key(value)
  local parts, why = hash_key.read(value)
  return parts ~= nil, why
end

local seconds = whole(0, MOST_SECONDS, true)
local optional_seconds = {
  read = function(value, path)
    -- As Go writes a text that is not set.
    if value == "" then value = 0 end
    return seconds.read(value, path)
  end,
  -- Texts in the schema.
  write = function(value) return '"' .. seconds.write(value) .. '"' end,
}

local port_text = whole(1, MOST_PORT, true)
local endpoint = schema.object {
  { "address", text(SHORT, is_address), true },
  { "port", { read = port_text.read, write = function(value) return '"' .. port_text.write(value) .. '"' end }, true },
}

local header_rule = {
  { "header", text(SHORT, optional(is_token)) },
  { "headerValue", text(LONG) },
  { "headerPattern", text(LONG) },
}

--- Numbers and names of ports alike: nothing here depends on it.
local any_port = {
  read = function(value, path)
    if type(value) == "number" then return whole(0, MOST_PORT).read(value, path) end
    return text(SHORT).read(value, path)
  end,
  write = cjson.encode,
}

local reader = schema.object {
  { "name", text(512, is_name), true },
  { "port", any_port },
  { "endpoints", schema.list(endpoint, 32768) },
  { "load-balance", schema.choice("", "round_robin", "ewma") },
  { "upstreamHashByConfig", schema.object {
    { "upstream-hash-by", text(LONG, is_key) },
    { "upstream-hash-by-subset", boolean },
    { "upstream-hash-by-subset-size", whole(0, 32768) },
  } },
  { "sessionAffinityConfig", schema.object {
    { "name", schema.choice("", "cookie") },
    { "mode", schema.choice("", "balanced", "persistent") },
    { "cookieSessionAffinity", schema.object {
      { "name", text(SHORT, optional(is_token)) },
      { "expires", optional_seconds },
      { "maxage", optional_seconds },
      { "locations", schema.map(schema.list(text(LONG), 65536)) },
      { "secure", boolean },
      { "path", text(LONG, is_attribute) },
      { "domain", text(SHORT, optional(matches("^[%w.-]+$", "must be a domain"))) },
      { "samesite", schema.choice("", "Strict", "Lax", "None") },
      { "conditional_samesite_none", boolean },
      { "change_on_failure", boolean },
    } },
  } },
  { "noServer", boolean },
  { "sslPassthrough", boolean },
  { "trafficShapingPolicy", schema.object {
    { "weight", whole(0, 1000000) },
    { "weightTotal", whole(0, 1000000) },
    header_rule[1], header_rule[2], header_rule[3],
    { "cookie", text(SHORT, optional(is_token)) },
    -- As OpenNJet's own scripts have it.
    { "headers", schema.list(schema.object(header_rule), 64) },
  } },
  { "alternativeBackends", schema.list(text(512, is_name), 64) },
}

--- Checks a backend from cjson: the backend with what is known of it, or nil and what is wrong. `path`: where it stands.
function backend.read(value, path)
  return reader.read(value, path)
end

--- One JSON text for each backend.
backend.write = reader.write

return backend
