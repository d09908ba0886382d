--- The token of the control endpoint: whoever changes state has to show it.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local bit = require "bit"
local byte = string.byte

local token = {}

--- Shorter ones are a mistake.
local LEAST = 32

local expected

--- Reads the token from a file, in `init_by_lua`. Without a good one nobody is let in.
function token.read(path)
  local file = path and io.open(path, "r")
  local text = file and file:read(1024)
  if file then file:close() end
  text = text and text:match("^%s*(%S+)%s*$")
  expected = text and #text >= LEAST and text or nil
  if not expected then ngx.log(ngx.ERR, "no token for the control endpoint: it refuses everybody") end
end

--- True if the request shows the token. Takes as long whatever part of it is right.
function token.is_shown()
  local shown = ngx.var.http_authorization
  if not expected or not shown or #shown ~= #expected + 7 or shown:sub(1, 7) ~= "Bearer " then return false end
  local difference = 0
  for i = 1, #expected do difference = bit.bor(difference, bit.bxor(byte(shown, i + 7), byte(expected, i))) end
  return difference == 0
end

return token
