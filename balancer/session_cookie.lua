--- The cookie that leads a client back to its peer, as NGINX's `sticky cookie` writes it. Name and attributes were checked with
-- their object. The same text as controller/proxies/embedded/session-cookie.ts makes.
local ngx = ngx or njt

local session_cookie = {}

local MAX = "; expires=Thu, 31 Dec 2037 23:55:55 GMT; max-age=315360000"

--- Makes a cookie of the model ready. `renewed`: its time begins anew with each answer.
function session_cookie.read(settings)
  local attributes = ""
  if type(settings.domain) == "string" then attributes = attributes .. "; domain=" .. settings.domain end
  if settings.httpOnly == true then attributes = attributes .. "; httponly" end
  if settings.secure == true then attributes = attributes .. "; secure" end
  if type(settings.sameSite) == "string" then attributes = attributes .. "; samesite=" .. settings.sameSite:lower() end
  if type(settings.path) == "string" then attributes = attributes .. "; path=" .. settings.path end
  local time = type(settings.expires) == "number" and settings.expires / 1000 or nil
  return {
    name = settings.name,
    time = time,
    kept = settings.expires == "max",
    renewed = time ~= nil,
    attributes = attributes,
  }
end

--- The value of a Set-Cookie header. `value` is what the core gives for the peer.
function session_cookie.text(cookie, value)
  local text = cookie.name .. "=" .. value
  if cookie.kept then
    text = text .. MAX
  elseif cookie.time then
    text = text .. "; expires=" .. ngx.http_time(ngx.time() + cookie.time) .. "; max-age=" .. math.floor(cookie.time)
  end
  return text .. cookie.attributes
end

return session_cookie
