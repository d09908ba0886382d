--- The cookie of a session: `<place>.<backend>`. The place is a point of the ring, 8 hexadecimal digits; the backend is a digest
-- of its name, so that a session stays with the alternative that it began with.
--
-- balanced: the place is drawn once, and whose part of the ring it is serves the session. persistent: the place is the first
-- point of the peer, and counts as long as that peer is there.
local ngx = ngx or njt
local bit = require "bit"

local affinity = {}

local DEFAULT_NAME = "route"
local DEFAULT_PATH = "/"
local NO_PLACE = "00000000"
--- Browsers that take `SameSite=None` for Strict or refuse the cookie (https://www.chromium.org/updates/same-site/incompatible-clients/).
local INCOMPATIBLE = { "iP.+; CPU .*OS 12[_%d]*", "Macintosh;.*Mac OS X 10_14[_%d]*.*Version/.*Safari", "Chrom[^ /]*/5[1-9]%.",
  "Chrom[^ /]*/6[0-6]%." }

--- The place of a peer: its first point on the ring.
function affinity.place(id)
  return bit.tohex(ngx.crc32_long(id .. "\0\0\0\0"))
end

--- What stands for a backend in cookies.
function affinity.digest(name)
  return ngx.md5(name):sub(1, 16)
end

--- Makes the settings of the schema ready; nil where there is no affinity.
function affinity.read(settings)
  if not settings or settings.name ~= "cookie" then return nil end
  local cookie = settings.cookieSessionAffinity or {}
  local function given(value) return value ~= "" and value or nil end
  return {
    name = given(cookie.name) or DEFAULT_NAME,
    persistent = settings.mode == "persistent",
    moves = cookie.change_on_failure == true,
    path = given(cookie.path),
    domain = given(cookie.domain),
    samesite = given(cookie.samesite),
    careful = cookie.conditional_samesite_none == true,
    secure = cookie.secure,
    expires = cookie.expires ~= 0 and cookie.expires or nil,
    max_age = cookie.maxage ~= 0 and cookie.maxage or nil,
    locations = cookie.locations,
  }
end

--- Place and digest of the backend that the client brings; nil where it brings none.
function affinity.brought(settings)
  local value = ngx.var["cookie_" .. settings.name]
  if not value then return nil end
  return value:match("^(%x%x%x%x%x%x%x%x)%.(%x+)$")
end

--- True where the schema's `locations` have the location at hand, or are not given. A host that is not among them gets no cookie.
local function is_wanted_here(settings)
  if not settings.locations then return true end
  local host = ngx.var.host or ""
  local paths = settings.locations[host] or settings.locations[(host:gsub("^[^.]+%.", "*.", 1))]
  if not paths then return false end
  local here = ngx.var.location_path
  if not here then return true end
  for _, path in ipairs(paths) do
    if path == here then return true end
  end
  return false
end

local function same_site(settings)
  local value = settings.samesite
  if value == "None" and settings.careful then
    local agent = ngx.var.http_user_agent or ""
    for _, pattern in ipairs(INCOMPATIBLE) do
      if agent:find(pattern) then return nil end
    end
  end
  return value
end

local function text(settings, value)
  local parts = { settings.name .. "=" .. value }
  if settings.expires then parts[#parts + 1] = "Expires=" .. ngx.cookie_time(ngx.time() + settings.expires) end
  if settings.max_age then parts[#parts + 1] = string.format("Max-Age=%d", settings.max_age) end
  if settings.domain then parts[#parts + 1] = "Domain=" .. settings.domain end
  local path = settings.path or ngx.var.location_path
  parts[#parts + 1] = "Path=" .. (path and path:find("^/[^%c;,]*$") and path or DEFAULT_PATH)
  local secure = settings.secure
  if secure == nil then secure = ngx.var.https == "on" end
  if secure then parts[#parts + 1] = "Secure" end
  parts[#parts + 1] = "HttpOnly"
  local samesite = same_site(settings)
  if samesite then parts[#parts + 1] = "SameSite=" .. samesite end
  return table.concat(parts, "; ")
end

--- Gives the client its cookie, in the place of one that this request was to get before.
function affinity.give(settings, place, digest)
  if not is_wanted_here(settings) then return end
  local kept = {}
  local before = ngx.header["Set-Cookie"] or {}
  local start = settings.name .. "="
  for _, one in ipairs(type(before) == "table" and before or { before }) do
    if one:sub(1, #start) ~= start then kept[#kept + 1] = one end
  end
  kept[#kept + 1] = text(settings, (place or NO_PLACE) .. "." .. digest)
  ngx.header["Set-Cookie"] = kept
end

return affinity
