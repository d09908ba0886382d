--- Readers of JSON values: each checks a value and gives it in one form, and writes that form as JSON text. The same content is
-- always the same text, so that texts can be compared.
--
-- A reader is `{read = function(value, path) -> value, or nil and what is wrong, write = function(value) -> text}`. Values come
-- from cjson.
local cjson = require "cjson.safe"

local concat, format = table.concat, string.format
local encode, null = cjson.encode, cjson.null

local schema = {}

--- Text of at most `most` bytes without control characters. `check(text)`: optional, true or what is wrong.
function schema.text(most, check)
  return {
    read = function(value, path)
      if type(value) ~= "string" then return nil, path .. ": must be text" end
      if #value > most then return nil, path .. ": is longer than " .. most .. " bytes" end
      if value:find("%c") then return nil, path .. ": has a control character" end
      local fine, why = true, nil
      if check then fine, why = check(value) end
      if not fine then return nil, path .. ": " .. why end
      return value
    end,
    write = encode,
  }
end

schema.boolean = {
  read = function(value, path)
    if type(value) ~= "boolean" then return nil, path .. ": must be true or false" end
    return value
  end,
  write = tostring,
}

--- A whole number; as text too where `as_text`.
function schema.whole(least, most, as_text)
  return {
    read = function(value, path)
      local number = value
      if as_text and type(value) == "string" and value:find("^%-?%d+$") then number = tonumber(value) end
      if type(number) ~= "number" or number % 1 ~= 0 or number < least or number > most then
        return nil, format("%s: must be a whole number from %d to %d", path, least, most)
      end
      return number
    end,
    write = function(value) return format("%d", value) end,
  }
end

--- One of these texts.
function schema.choice(...)
  local choices = {}
  for _, one in ipairs { ... } do choices[one] = true end
  local names = concat({ ... }, ", ")
  return {
    read = function(value, path)
      if type(value) ~= "string" or not choices[value] then return nil, path .. ": must be one of " .. names end
      return value
    end,
    write = encode,
  }
end

local function is_list(value)
  if type(value) ~= "table" then return false end
  local count = 0
  for key in pairs(value) do
    if type(key) ~= "number" then return false end
    count = count + 1
  end
  return count == #value
end

function schema.list(of, most)
  return {
    read = function(value, path)
      if not is_list(value) then return nil, path .. ": must be an array" end
      if #value > most then return nil, format("%s: has more than %d entries", path, most) end
      local list = {}
      for i, one in ipairs(value) do
        local entry, why = of.read(one, format("%s[%d]", path, i - 1))
        if entry == nil then return nil, why end
        list[i] = entry
      end
      return list
    end,
    write = function(list)
      local parts = {}
      for i, one in ipairs(list) do parts[i] = of.write(one) end
      return "[" .. concat(parts, ",") .. "]"
    end,
  }
end

local function is_object(value)
  if type(value) ~= "table" then return false end
  for key in pairs(value) do
    if type(key) ~= "string" then return false end
  end
  return true
end

--- An object of any names. `check(name)`: optional, true or what is wrong.
function schema.map(of, check)
  return {
    read = function(value, path)
      if not is_object(value) then return nil, path .. ": must be an object" end
      local map = {}
      for name, one in pairs(value) do
        local fine, wrong = true, nil
        if check then fine, wrong = check(name) end
        -- What was sent is quoted as JSON only, so that it can't break out of the answer.
        local where = path .. "[" .. (encode(name:sub(1, 256)) or "?") .. "]"
        if not fine then return nil, where .. ": " .. wrong end
        local entry, why = of.read(one, where)
        if entry == nil then return nil, why end
        map[name] = entry
      end
      return map
    end,
    write = function(map)
      local names, parts = {}, {}
      for name in pairs(map) do names[#names + 1] = name end
      table.sort(names)
      for i, name in ipairs(names) do parts[i] = encode(name) .. ":" .. of.write(map[name]) end
      return "{" .. concat(parts, ",") .. "}"
    end,
  }
end

--- An object with these fields, `{name, reader, needed}` each. null is as good as nothing, and names that are not among them are
-- passed over: other versions of the schema have more.
function schema.object(fields)
  return {
    read = function(value, path)
      if not is_object(value) then return nil, path .. ": must be an object" end
      local object = {}
      for _, field in ipairs(fields) do
        local name, reader = field[1], field[2]
        local given = value[name]
        local where = path == "" and name or path .. "." .. name
        if given ~= nil and given ~= null then
          local read, why = reader.read(given, where)
          if read == nil then return nil, why end
          object[name] = read
        elseif field[3] then
          return nil, where .. ": is needed"
        end
      end
      return object
    end,
    write = function(object)
      local parts = {}
      for _, field in ipairs(fields) do
        local value = object[field[1]]
        if value ~= nil then parts[#parts + 1] = encode(field[1]) .. ":" .. field[2].write(value) end
      end
      return "{" .. concat(parts, ",") .. "}"
    end,
  }
end

return schema
