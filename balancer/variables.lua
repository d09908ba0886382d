--- NGINX's variables as bytes where they stand, for what every request needs: `ngx.var` makes a Lua string of each value, which
-- costs more than reading it, and is garbage afterwards.
--
-- Addresses are good until the request ends. `r` is NGINX's request: `resty.core.base`.get_request().
local ffi = require "ffi"
-- Declares the functions.
require "resty.core.var"

local C, copy, new, text_of = ffi.C, ffi.copy, ffi.new, ffi.string

local variables = {}

--- A function of the Lua module by its name without prefix, which OpenNJet has another of. It must be declared.
function variables.native(name)
  local fine, found = pcall(function() return C["ngx_http_lua_ffi_" .. name] end)
  return fine and found or C["njt_http_lua_ffi_" .. name]
end

local get, set = variables.native "var_get", variables.native "var_set"

local OK = 0
local LONGEST_NAME, MESSAGE, LONGEST_NUMBER = 64, 256, 31
local value, size, message = new("unsigned char *[1]"), new("size_t[1]"), new("char *[1]")
--- A name in lower case, and behind it what is wrong.
local room = new("unsigned char[?]", LONGEST_NAME + MESSAGE)
local digits = new("char[?]", LONGEST_NUMBER + 1)
local number_end = new("char *[1]")
local POINT = 46

ffi.cdef [[
  unsigned long long strtoull(const char *text, char **end, int base);
]]

--- Address and length of a value; nil and 0 where the variable has none. `name`: of the program, in lower case.
function variables.find(r, name)
  if get(r, name, #name, room, 0, value, size, message) ~= OK then return nil, 0 end
  return value[0], tonumber(size[0])
end

--- The value as a string, or nil.
function variables.text(r, name)
  if get(r, name, #name, room, 0, value, size, message) ~= OK then return nil end
  return text_of(value[0], size[0])
end

--- Puts a value where the functions of C find its end; false where there is none.
local function take_digits(r, name)
  if get(r, name, #name, room, 0, value, size, message) ~= OK then return false end
  local length = tonumber(size[0])
  if length > LONGEST_NUMBER then length = LONGEST_NUMBER end
  copy(digits, value[0], length)
  digits[length] = 0
  return true
end

--- The whole number that a value is; 0 where there is none.
function variables.whole_number(r, name)
  return take_digits(r, name) and tonumber(C.strtoull(digits, nil, 10)) or 0
end

--- The seconds that a value begins with, as NGINX writes them, with three digits behind the point; 0 where there are none.
function variables.seconds(r, name)
  if not take_digits(r, name) then return 0 end
  local whole = tonumber(C.strtoull(digits, number_end, 10))
  if number_end[0][0] ~= POINT then return whole end
  return whole + tonumber(C.strtoull(number_end[0] + 1, nil, 10)) / 1000
end

--- Sets a variable to bytes, which NGINX copies.
function variables.set(r, name, bytes, length)
  size[0] = MESSAGE
  if set(r, name, #name, room, bytes, length, room + LONGEST_NAME, size) ~= OK then
    error(text_of(room + LONGEST_NAME, size[0]))
  end
end

return variables
