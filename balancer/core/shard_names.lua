-- What the image of a shard says about itself: its host pattern, and who owns which route under which path. Texts are read
-- when they are asked for the first time, since a host may have many routes.
--
--   ShardNames.read(memory, image)  -> names; `names.host` is the pattern as objects spell it: `*.example.com`, `` for any
--   names:route(memory, image, index) -> {resource = "Kind/namespace/name", host = pattern, path = as the object spells it}
--   names:guard(memory, image, index) -> the same, of a rule that comes before any path
--   names:unmatched(memory, image)    -> the same, of what is unmatched

-- Offsets of the header, as core-wasm/assembly/image/layout.ts has them.
local HOST_LENGTH = 20
local PATTERN = 24
local ROUTES = 32
local GUARDS = 48
local NAMES = 72
local HEADER = 96
local ROUTE_SIZE = 12
local RESOURCE_SIZE = 8
local NONE = 4294967295
local EXACT = 0
local ANY_LABELS = 2

local ShardNames = {}
ShardNames.__index = ShardNames

local function text_at(memory, image, field)
  return memory:text(image + memory:word(field), memory:word(field + 4))
end

function ShardNames.read(memory, image)
  local kind = memory:word(image + PATTERN)
  local own = memory:text(image + HEADER, memory:word(image + HOST_LENGTH))
  local host = kind == EXACT and own or kind <= ANY_LABELS and ("*." .. own) or ""
  local names = memory:word(image + NAMES)
  local self = {
    host = host,
    routes = {},
    guards = {},
    nameless = names == 0 and { resource = "", host = host, path = "" },
  }
  if names ~= 0 then
    self.resources_at = names + 4
    self.routes_at = self.resources_at + memory:word(image + names) * RESOURCE_SIZE
    self.guards_at = self.routes_at + memory:word(image + ROUTES) * ROUTE_SIZE
    self.unmatched_at = self.guards_at + memory:word(image + GUARDS) * 4
  end
  return setmetatable(self, ShardNames)
end

function ShardNames:origin(memory, image, resource, path)
  if resource == NONE then
    return { resource = "", host = self.host, path = path }
  end
  local field = image + self.resources_at + resource * RESOURCE_SIZE
  return { resource = text_at(memory, image, field), host = self.host, path = path }
end

function ShardNames:route(memory, image, index)
  local known = self.nameless or self.routes[index]
  if not known then
    local at = image + self.routes_at + index * ROUTE_SIZE
    known = self:origin(memory, image, memory:word(at), text_at(memory, image, at + 4))
    self.routes[index] = known
  end
  return known
end

function ShardNames:guard(memory, image, index)
  local known = self.nameless or self.guards[index]
  if not known then
    known = self:origin(memory, image, memory:word(image + self.guards_at + index * 4), "")
    self.guards[index] = known
  end
  return known
end

function ShardNames:unmatched(memory, image)
  local known = self.nameless or self.rest
  if not known then
    known = self:origin(memory, image, memory:word(image + self.unmatched_at), "")
    self.rest = known
  end
  return known
end

return ShardNames
