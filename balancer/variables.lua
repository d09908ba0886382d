--- NGINX's variables as bytes where they stand, for what every request needs: `ngx.var` makes a Lua string of each value, which
-- costs more than reading it, and is garbage afterwards.
--
--   variables.name(text)               -> a name, made once and kept. `text` in lower case
--   variables.open(library)            in `init_worker`; `library` is the native core, see balancer.core.native
--   variables.choose(r)                how values are read, see below; the first request that asks for one calls it
--   variables.find(r, name)            -> address and length of the value; nil and 0 where the variable has none
--   variables.text(r, name)            -> the value as a string, or nil
--   variables.number(r, name)          -> the number that the value begins with, such as 12 or 0.003; 0 where there is none
--   variables.set(r, name, bytes, length)  NGINX copies the bytes
--
-- Addresses are good until the request ends. `r` is NGINX's request: `resty.core.base`.get_request().
--
-- A name is looked up by its hash. The Lua module makes it anew with each call, which takes longer than the look-up; so a value is asked
-- for where the module asks itself, by NGINX's own function for its modules, with a hash that is made once. The first request
-- asks it for a value that is known, and the worker stays with the Lua module where the answer is another one.
local ngx = ngx or njt
local bit = require "bit"
local ffi = require "ffi"
-- Declares the functions of the Lua module.
require "resty.core.var"

local C, new, text_of, typeof = ffi.C, ffi.new, ffi.string, ffi.typeof
local band = bit.band

local variables = {}

--- A function of the Lua module by its name without prefix, which OpenNJet has another of. It must be declared.
function variables.native(name)
  local fine, found = pcall(function() return C["ngx_http_lua_ffi_" .. name] end)
  return fine and found or C["njt_http_lua_ffi_" .. name]
end

-- ngx_str_t with the hash of its text behind it, and ngx_http_variable_value_t, whose first word has the length in its lower bits. A
-- VM that runs without a cache of Lua code comes here again.
if not pcall(typeof, "njk_variable_name") then
  ffi.cdef [[
    typedef struct { size_t length; const char *bytes; uintptr_t hash; } njk_variable_name;
    typedef struct { uint32_t length_and_marks; unsigned char *bytes; } njk_variable_value;
    njk_variable_value *ngx_http_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);
    njk_variable_value *njt_http_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);
  ]]
end
local LENGTH, NOT_FOUND = 0x0fffffff, 0x40000000
local SYMBOLS = { "ngx_http_get_variable", "njt_http_get_variable" }

local get, set = variables.native "var_get", variables.native "var_set"
local OK = 0
local LONGEST_NAME, MESSAGE = 64, 256
local value, size, message = new("unsigned char *[1]"), new("size_t[1]"), new("char *[1]")
--- A name in lower case, and behind it what is wrong.
local room = new("unsigned char[?]", LONGEST_NAME + MESSAGE)

local new_name = typeof "njk_variable_name"
--- By text, so that the text of a name stays in memory.
local names = {}

--- As NGINX's ngx_hash, in as many bits as an address has.
local function hash_of(text)
  local hash = new "uintptr_t"
  for i = 1, #text do hash = hash * 31 + text:byte(i) end
  return hash
end

function variables.name(text)
  local name = names[text]
  if not name then
    name = new_name(#text, text, hash_of(text))
    names[text] = name
  end
  return name
end

local function find_by_module(r, name)
  if get(r, name.bytes, name.length, room, 0, value, size, message) ~= OK then return nil, 0 end
  return value[0], tonumber(size[0])
end

--- Asks a function of NGINX itself.
local function finder(get_variable)
  return function(r, name)
    local found = get_variable(r, name, name.hash)
    if found == nil then return nil, 0 end
    local word = found.length_and_marks
    if band(word, NOT_FOUND) ~= 0 then return nil, 0 end
    return found.bytes, band(word, LENGTH)
  end
end

local function of_program(symbol)
  local fine, found = pcall(function() return C[symbol] end)
  return fine and found or nil
end

local find, decimal

--- Chooses how values are read: true if by the program itself. By a request that somebody has sent: that of `init_worker` has no places for
-- the values of variables that the configuration names, where NGINX would look for them. `symbols`: other names of the function.
function variables.choose(r, symbols)
  find = find_by_module
  for _, symbol in ipairs(symbols or SYMBOLS) do
    local get_variable = of_program(symbol)
    local find_directly = get_variable and finder(get_variable)
    local bytes, length
    if find_directly then bytes, length = find_directly(r, variables.name "pid") end
    if bytes and text_of(bytes, length) == tostring(ngx.worker.pid()) then
      find = find_directly
      return true
    end
  end
  return false
end

--- Of the first request.
local function find_first(r, name)
  if not variables.choose(r) then
    ngx.log(ngx.WARN, "variables are read by the Lua module, more slowly: the program itself does not give them")
  end
  return find(r, name)
end

function variables.open(library)
  decimal, find = library.functions.njk_decimal, find_first
end

function variables.find(r, name)
  return find(r, name)
end

function variables.text(r, name)
  local bytes, length = find(r, name)
  return bytes and text_of(bytes, length) or nil
end

function variables.number(r, name)
  local bytes, length = find(r, name)
  return bytes and decimal(bytes, length) or 0
end

function variables.set(r, name, bytes, length)
  size[0] = MESSAGE
  if set(r, name.bytes, name.length, room, bytes, length, room + LONGEST_NAME, size) ~= OK then
    error(text_of(room + LONGEST_NAME, size[0]))
  end
end

return variables
