--- Keys of hashes: text with `$variables` and `${variables}` of NGINX.
local ngx = ngx or njt

local concat = table.concat

local hash_key = {}

--- Parts of a key: texts, and `{name}` for variables; nil and what is wrong.
function hash_key.read(text)
  local parts, at = {}, 1
  while at <= #text do
    local dollar = text:find("$", at, true)
    if dollar ~= at then parts[#parts + 1] = text:sub(at, (dollar or 0) - 1) end
    if not dollar then break end
    local name, after = text:match("^%$([%w_]+)()", dollar)
    if not name then
      name, after = text:match("^%${([%w_]+)}()", dollar)
    end
    if not name then return nil, "a $ needs the name of a variable after it" end
    -- Groups of the last regular expression go by number.
    parts[#parts + 1] = { tonumber(name) or name }
    at = after
  end
  return parts
end

--- The key of the request at hand; "" where it says nothing. What is not there is empty.
function hash_key.evaluate(parts)
  local values = {}
  for i, part in ipairs(parts) do values[i] = type(part) == "string" and part or ngx.var[part[1]] or "" end
  return concat(values)
end

return hash_key
