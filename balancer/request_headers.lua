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

--- The value of a header by its name in lower case; nil where there is none. One that was sent several times is joined, as
-- RFC 9110 5.3 has it.
function request_headers.value(r, name)
  truncated[0] = 0
  local count = count_headers(r, MOST, truncated)
  if count <= 0 then return nil end
  if truncated[0] ~= 0 or read_headers(r, into, count, LOWER_CASE) ~= 0 then return joined(name) end
  local at = find(found, count, name, #name)
  if at == NONE then return nil end
  if at < 0 then return joined(name) end
  local value = found[at].value
  return text_of(value.bytes, value.length)
end

return request_headers
