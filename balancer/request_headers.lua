--- One header of the request at hand, by its name: `ngx.req.get_headers` makes a table of all of them, with two strings for each, which
-- is most of what a condition on a header costs.
local ngx = ngx or njt
local ffi = require "ffi"
local variables = require "balancer.variables"
-- Declares the functions.
require "resty.core.request"

local C, cast, new, text_of = ffi.C, ffi.cast, ffi.new, ffi.string
local concat = table.concat

local request_headers = {}

ffi.cdef [[
  typedef struct { int length; const unsigned char *bytes; } njk_text;
  typedef struct { njk_text name, value; } njk_header;
  int memcmp(const void *one, const void *other, size_t length);
]]

local native = variables.native
local count_headers, read_headers = native "req_get_headers_count", native "req_get_headers"

--- Headers that are looked at here; a request with more is looked at as a table.
local MOST = 128
local LOWER_CASE = 0
local found = new("njk_header[?]", MOST)
local into = cast("void *", found)
local truncated = new("int[1]")

--- All values of a header that was sent several times, or of a request with very many.
local function joined(name)
  local value = ngx.req.get_headers(0)[name]
  if type(value) == "table" then return concat(value, name == "cookie" and "; " or ", ") end
  -- A header without a value.
  if value == true then return "" end
  return value
end

local function is(text, name, length)
  return text.length == length and C.memcmp(text.bytes, name, length) == 0
end

--- The value of a header by its name in lower case; nil where there is none. One that was sent several times is joined, as
-- RFC 9110 5.3 has it.
function request_headers.value(r, name)
  truncated[0] = 0
  local count = count_headers(r, MOST, truncated)
  if count <= 0 then return nil end
  if truncated[0] ~= 0 or read_headers(r, into, count, LOWER_CASE) ~= 0 then return joined(name) end
  local length = #name
  local at = -1
  for i = 0, count - 1 do
    if is(found[i].name, name, length) then
      if at >= 0 then return joined(name) end
      at = i
    end
  end
  if at < 0 then return nil end
  local value = found[at].value
  return text_of(value.bytes, value.length)
end

return request_headers
