--- One header of the request at hand, by its name: `ngx.req.get_headers` makes a table of all of them, with two strings for each, which
-- is most of what a condition on a header costs.
local ngx = ngx or njt
local ffi = require "ffi"
local variables = require "balancer.variables"
-- Declare the functions.
require "resty.core.request"
require "balancer.core.native"

local cast, new, text_of = ffi.cast, ffi.new, ffi.string
local concat = table.concat

local request_headers = {}

local native = variables.native
local count_headers, read_headers = native "req_get_headers_count", native "req_get_headers"

--- Headers that are looked at here; a request with more is looked at as a table.
local MOST = 128
local LOWER_CASE = 0
local NONE = -1
local truncated = new("int[1]")
--- Memory for headers and for names of them, and what finds them there; after `open`.
local found, into, find
local one_name, one_place

--- All values of a header that was sent several times, or of a request with very many.
local function joined(name)
  local value = ngx.req.get_headers(0)[name]
  if type(value) == "table" then return concat(value, name == "cookie" and "; " or ", ") end
  -- A header without a value.
  if value == true then return "" end
  return value
end

--- `library`: the native core, see balancer.core.native.
function request_headers.open(library)
  find = library.functions.njk_find_headers
  found = new("njk_header[?]", MOST)
  into = cast("void *", found)
  one_name, one_place = new("njk_text[1]"), new("int32_t[1]")
end

--- Looks where the headers of the request at hand stand: how many there are; nil for more than are looked at here.
local function read(r)
  truncated[0] = 0
  local count = count_headers(r, MOST, truncated)
  if truncated[0] ~= 0 or count > 0 and read_headers(r, into, count, LOWER_CASE) ~= 0 then return nil end
  return count
end

--- What stands at a place that `find` has found; one that was sent several times is joined, as RFC 9110 5.3 has it.
local function value_at(at, name)
  if at == NONE then return nil end
  if at < 0 then return joined(name) end
  local value = found[at].value
  return text_of(value.bytes, value.length)
end

--- The value of a header of whatever request, by its name in lower case; nil where there is none.
function request_headers.value(r, name)
  local count = read(r)
  if not count then return joined(name) end
  one_name[0].bytes, one_name[0].length = name, #name
  find(found, count, one_name, one_place, 1)
  return value_at(one_place[0], name)
end

--- A function of the request that answers the values of two headers, nil for who is not there.
function request_headers.pair(first, second)
  local names, places = new("njk_text[2]"), new("int32_t[2]")
  names[0].bytes, names[0].length = first, #first
  names[1].bytes, names[1].length = second, #second
  return function(r)
    local count = read(r)
    if not count then return joined(first), joined(second) end
    find(found, count, names, places, 2)
    return value_at(places[0], first), value_at(places[1], second)
  end
end

return request_headers
