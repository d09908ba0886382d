--- Readers of JSON values: each checks a value and gives it in one form, and writes that form as JSON text. The same content is
-- always the same text, so that texts can be compared.
--
-- A reader is `{read = function(value) -> value, or nil, what is wrong and where below the value, write = function(value) -> text}`.
-- Values come from cjson. Where it is wrong is put together only then: tens of thousands of values are right.
local cjson = require "cjson.safe"

local concat, find, format = table.concat, string.find, string.format
local encode, null = cjson.encode, cjson.null

local schema = {}

--- A text as JSON. Most need no escape, and it takes longer to ask cjson.
local function write_text(value)
  return find(value, '[%c"\\\127-\255]') and encode(value) or '"' .. value .. '"'
end

--- What a reader answers for a value whose part `name` is wrong.
local function below(name, why, where)
  return nil, why, name .. (where or "")
end

--- Text of at most `most` bytes without control characters. `check(text)`: optional, true or false and what is wrong.
function schema.text(most, check)
  return {
    read = function(value)
      if type(value) ~= "string" then return nil, "must be text" end
      if #value > most then return nil, "is longer than " .. most .. " bytes" end
      if find(value, "%c") then return nil, "has a control character" end
      if check then
        local fine, why = check(value)
        if not fine then return nil, why end
      end
      return value
    end,
    write = write_text,
  }
end

schema.boolean = {
  read = function(value)
    if type(value) ~= "boolean" then return nil, "must be true or false" end
    return value
  end,
  write = tostring,
}

--- A whole number; as text too where `as_text`.
function schema.whole(least, most, as_text)
  return {
    read = function(value)
      local number = value
      if as_text and type(value) == "string" and find(value, "^%-?%d+$") then number = tonumber(value) end
      if type(number) ~= "number" or number % 1 ~= 0 or number < least or number > most then
        return nil, format("must be a whole number from %d to %d", least, most)
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
    read = function(value)
      if type(value) ~= "string" or not choices[value] then return nil, "must be one of " .. names end
      return value
    end,
    write = write_text,
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
    read = function(value)
      if not is_list(value) then return nil, "must be an array" end
      if #value > most then return nil, format("has more than %d entries", most) end
      local list = {}
      for i = 1, #value do
        local entry, why, where = of.read(value[i])
        if entry == nil then return below("[" .. i - 1 .. "]", why, where) end
        list[i] = entry
      end
      return list
    end,
    write = function(list)
      local parts = {}
      for i = 1, #list do parts[i] = of.write(list[i]) end
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

--- An object of any names. `check(name)`: optional, true or false and what is wrong.
function schema.map(of, check)
  return {
    read = function(value)
      if not is_object(value) then return nil, "must be an object" end
      local map = {}
      for name, one in pairs(value) do
        local fine, why, entry, where = true, nil, nil, nil
        if check then fine, why = check(name) end
        if fine then entry, why, where = of.read(one) end
        -- What was sent is quoted as JSON only, so that it can't break out of the answer.
        if entry == nil then return below("[" .. (encode(name:sub(1, 256)) or "?") .. "]", why, where) end
        map[name] = entry
      end
      return map
    end,
    write = function(map)
      local names, parts = {}, {}
      for name in pairs(map) do names[#names + 1] = name end
      table.sort(names)
      for i, name in ipairs(names) do parts[i] = write_text(name) .. ":" .. of.write(map[name]) end
      return "{" .. concat(parts, ",") .. "}"
    end,
  }
end

--- An object with these fields, `{name, reader, needed}` each. null is as good as nothing, and names that are not among them are
-- passed over: other versions of the schema have more.
function schema.object(fields)
  return {
    read = function(value)
      if not is_object(value) then return nil, "must be an object" end
      local object = {}
      for i = 1, #fields do
        local field = fields[i]
        local name = field[1]
        local given = value[name]
        if given ~= nil and given ~= null then
          local read, why, where = field[2].read(given)
          if read == nil then return below("." .. name, why, where) end
          object[name] = read
        elseif field[3] then
          return below("." .. name, "is needed")
        end
      end
      return object
    end,
    write = function(object)
      local parts = {}
      for i = 1, #fields do
        local field = fields[i]
        local value = object[field[1]]
        if value ~= nil then parts[#parts + 1] = '"' .. field[1] .. '":' .. field[2].write(value) end
      end
      return "{" .. concat(parts, ",") .. "}"
    end,
  }
end

return schema
