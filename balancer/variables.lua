--- NGINX's variables as bytes where they stand, for what every request needs: `ngx.var` makes a Lua string of each value, which
-- costs more than reading it, and is garbage afterwards.
--
--   variables.name(text)               -> a name, made once and kept. `text` in lower case
--   variables.open(library)            in `init_worker`; `library` is the native core, see balancer.core.native
--   variables.choose(r)                how values are read, see below; the first request that asks for one calls it
--   variables.find(r, name)            -> address and length of the value; nil and 0 where the variable has none
--   variables.list(text, ...)          -> some names, for the two below; made once and kept
--   variables.find_all(r, list)        -> texts, the first at 0, each {bytes, length} as `find` has them. They stand in the list
--   variables.numbers(r, list)         -> numbers, the first at 0. They stand in the list
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
-- Declare functions of the Lua module, and of the native core.
require "resty.core.var"
require "balancer.core.native"

local C, cast, new, text_of, typeof = ffi.C, ffi.cast, ffi.new, ffi.string, ffi.typeof
local band = bit.band

local variables = {}

--- A function of the Lua module by its name without prefix, which OpenNJet has another of. It must be declared.
function variables.native(name)
  local fine, found = pcall(function() return C["ngx_http_lua_ffi_" .. name] end)
  return fine and found or C["njt_http_lua_ffi_" .. name]
end

ffi.cdef [[
  njk_variable_value *ngx_http_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);
  njk_variable_value *njt_http_get_variable(void *request, const njk_variable_name *name, uintptr_t hash);
]]
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

local function make(name, text)
  name.length, name.bytes, name.hash = #text, text, hash_of(text)
end

function variables.list(...)
  local texts = { ... }
  local list = {
    count = #texts,
    -- Keeps their bytes in memory.
    texts = texts,
    names = new("njk_variable_name[?]", #texts),
    values = new("njk_text[?]", #texts),
    numbers = new("double[?]", #texts),
  }
  for i, text in ipairs(texts) do make(list.names[i - 1], text) end
  return list
end

function variables.name(text)
  local name = names[text]
  if not name then
    name = new_name()
    make(name, text)
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

--- How values are found, one and several; functions of the native core.
local find, find_all, numbers
local decimal, native_find_all, native_numbers

local function find_all_by_module(r, list)
  for i = 0, list.count - 1 do
    local bytes, length = find_by_module(r, list.names[i])
    list.values[i].bytes, list.values[i].length = bytes, length
  end
  return list.values
end

local function numbers_by_module(r, list)
  local values = find_all_by_module(r, list)
  for i = 0, list.count - 1 do list.numbers[i] = decimal(values[i].bytes, values[i].length) end
  return list.numbers
end

--- As find_all and numbers, by a function of NGINX itself.
local function finders(get_variable)
  get_variable = cast("njk_get_variable *", get_variable)
  return function(r, list)
    native_find_all(get_variable, r, list.names, list.values, list.count)
    return list.values
  end, function(r, list)
    native_numbers(get_variable, r, list.names, list.numbers, list.count)
    return list.numbers
  end
end

--- Chooses how values are read: true if by the program itself. By a request that somebody has sent: that of `init_worker` has no places for
-- the values of variables that the configuration names, where NGINX would look for them. `symbols`: other names of the function.
function variables.choose(r, symbols)
  find, find_all, numbers = find_by_module, find_all_by_module, numbers_by_module
  for _, symbol in ipairs(symbols or SYMBOLS) do
    local get_variable = of_program(symbol)
    local find_directly = get_variable and finder(get_variable)
    local bytes, length
    if find_directly then bytes, length = find_directly(r, variables.name "pid") end
    if bytes and text_of(bytes, length) == tostring(ngx.worker.pid()) then
      find = find_directly
      find_all, numbers = finders(get_variable)
      return true
    end
  end
  return false
end

--- By the first request.
local function choose_first(r)
  if not variables.choose(r) then
    ngx.log(ngx.WARN, "variables are read by the Lua module, more slowly: the program itself does not give them")
  end
end

function variables.open(library)
  local functions = library.functions
  decimal, native_find_all, native_numbers = functions.njk_decimal, functions.njk_find_variables, functions.njk_variable_numbers
  find = function(r, name)
    choose_first(r)
    return find(r, name)
  end
  find_all = function(r, list)
    choose_first(r)
    return find_all(r, list)
  end
  numbers = function(r, list)
    choose_first(r)
    return numbers(r, list)
  end
end

function variables.find(r, name)
  return find(r, name)
end

function variables.find_all(r, list)
  return find_all(r, list)
end

function variables.numbers(r, list)
  return numbers(r, list)
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
