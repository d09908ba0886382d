--- One header of the request at hand, by its name: `ngx.req.get_headers` makes a table of all of them, with two strings for each, which
-- is most of what a condition on a header costs.
local ngx = ngx or njt
local ffi = require "ffi"
local variables = require "balancer.variables"
-- Declares the functions.
require "resty.core.request"

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
--- Memory for headers, and what finds one there; after `open`.
local found, into, find

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
  find = library.functions.njk_find_header
  found = new("njk_header[?]", MOST)
  into = cast("void *", found)
end

--- Looks where the headers of the request at hand stand, for `among`: how many there are; nil for more than are looked at here.
local function read(r)
  truncated[0] = 0
  local count = count_headers(r, MOST, truncated)
  if truncated[0] ~= 0 or count > 0 and read_headers(r, into, count, LOWER_CASE) ~= 0 then return nil end
  return count
end
request_headers.read = read

--- The value of a header by its name in lower case, among those that `read` has looked at last; nil where there is none. One that was
-- sent several times is joined, as RFC 9110 5.3 has it.
local function among(count, name)
  local at = find(found, count, name, #name)
  if at == NONE then return nil end
  if at < 0 then return joined(name) end
  local value = found[at].value
  return text_of(value.bytes, value.length)
end
request_headers.among = among

--- The same, of whatever request.
function request_headers.value(r, name)
  local count = read(r)
  if not count then return joined(name) end
  return among(count, name)
end

return request_headers
