-- Where the decisions of a worker are made: a context of the core with its buffers, and how requests get into it.
--
--   Context.new(memory, table_address) -> context, or nil
--   context:route(host, host_length, target, target_length, https, random, now) -> status of the core: OK, NEED, TOO_LONG or
--                                      an error; or PLAIN: the request goes on to a peer as it came, to `plain.peer` of the set at
--                                      `plain.peers`, by `plain.route` of the shard at `plain.shard`
--   context:fill_in(request)           fills in what a NEED asks for
--   context:decide(host, host_length, target, target_length, https, random, now, request) -> status as of `route`; goes on
--                                      until the request is decided
--   context:word(field)                -> an unsigned word of the context, by the names in Context.FIELDS
--   context:changed()                  to be called after every change of the table
--
-- `host` and `target` are as the client sent them, strings or addresses of bytes, `random` is a whole number below 2^32, `now` a time in milliseconds of any
-- origin. `request` tells the core what it asks for, and is asked for nothing else:
--   request:client_address(), request:client_port(), request:method(), request:protocol()  -> texts
--   request:header(name) -> value of a header by lower-case name, one that was sent several times joined by ", " (cookies by
--                           "; "); nil if there is none
-- None of them may yield.

local bit = require "bit"
local ffi = require "ffi"
local status = require "balancer.core.status"

local tobit = bit.tobit
local copy = ffi.copy
local NEED = status.NEED

-- Offsets of the public words of a context, in words (core-wasm/ABI.md, "Words of a context").
local FIELDS = {
  ACTION = 32 / 4,
  STATUS = 36 / 4,
  ROUTE = 40 / 4,
  SHARD = 44 / 4,
  UPSTREAM = 48 / 4,
  PEERS = 52 / 4,
  PEER = 56 / 4,
  TEXT = 60 / 4,
  TEXT_LENGTH = 64 / 4,
  TYPE = 68 / 4,
  TYPE_LENGTH = 72 / 4,
  SETTINGS = 76 / 4,
  SETTINGS_LENGTH = 80 / 4,
  ORIGIN = 84 / 4,
  RENDERED = 88 / 4,
  POSITION = 100 / 4,
  GUARD = 204 / 4,
  MARKS = 548 / 4,
  HASH = 556 / 4,
}
local INPUT = 8 / 4
local NEED_COUNT = 24 / 4
local NEEDS = 28 / 4
local NOW = 544 / 4

local NEED_WORDS = 4
local HTTPS = 1
-- Largest host and target together; what is longer is answered with 414.
local INPUT_SIZE = 65536
-- Room for a target that grows threefold by escaping, and for bodies.
local OUTPUT_SIZE = 262144
local FIRST_VALUES = 16384

-- Facts of the connection are asked for by numbers below 4, headers by the address of their name.
local FACTS = {
  [0] = function(request)
    return request:client_address()
  end,
  [1] = function(request)
    return tostring(request:client_port())
  end,
  [2] = function(request)
    return request:method()
  end,
  [3] = function(request)
    return request:protocol()
  end,
}

local Context = { FIELDS = FIELDS, TOO_LONG = -1000 }
Context.__index = Context

function Context.new(memory, table_address)
  local functions = memory.functions
  local values = memory:alloc(FIRST_VALUES)
  local address = functions.njk_context_new(memory.instance, table_address, INPUT_SIZE, OUTPUT_SIZE)
  if not values or address == 0 or memory.instance.trap ~= 0 then
    return nil
  end
  address = address % 4294967296
  return setmetatable({
    memory = memory,
    functions = functions,
    address = address,
    base = address / 4,
    input = memory:word(address + INPUT * 4),
    values = values,
    values_size = FIRST_VALUES,
    values_used = 0,
    plain = ffi.new "njk_plain",
    outgrown = {},
    names = {},
  }, Context)
end

function Context:changed()
  -- Ids of headers are addresses in images, which a change may have replaced.
  if next(self.names) then
    self.names = {}
  end
end

function Context:word(field)
  return self.memory.instance.words[self.base + field]
end

function Context:set_time(now)
  self.memory.instance.words[self.base + NOW] = tobit(now)
end

function Context:free_outgrown()
  for i = #self.outgrown, 1, -1 do
    self.memory:free(self.outgrown[i])
    self.outgrown[i] = nil
  end
end

local function route(self, host, host_length, target, target_length, https, random, now)
  if host_length + target_length > INPUT_SIZE - 4 then
    return Context.TOO_LONG
  end
  self.values_used = 0
  if self.outgrown[1] then
    self:free_outgrown()
  end
  return self.functions.njk_decide(self.memory.instance, self.address, self.input, host, host_length, target, target_length,
    https and HTTPS or 0, random, tobit(now), self.plain)
end
Context.route = route

function Context:name(id)
  local name = self.names[id]
  if not name then
    name = self.memory:text(id + 4, self.memory:word(id))
    self.names[id] = name
  end
  return name
end

-- Goes on in a larger block; values of the request that stand in the old one stay there until the next request.
function Context:grow_values(size)
  local grown_size = math.max(self.values_size, size) * 2
  local grown = self.memory:alloc(grown_size)
  if not grown then
    return false
  end
  self.outgrown[#self.outgrown + 1] = self.values
  self.values, self.values_size, self.values_used = grown, grown_size, 0
  return true
end

-- Fills in what the words at `need` ask for.
function Context:fill_in_one(request, need)
  local memory = self.memory
  local id = memory.instance.words[need]
  local fact = FACTS[id]
  local value
  if fact then
    value = fact(request)
  else
    value = request:header(self:name(id))
  end
  if not value then
    return status.OK
  end
  local length = #value
  if self.values_used + length > self.values_size and not self:grow_values(length) then
    return status.MEMORY
  end
  local start = self.values + self.values_used
  local instance = memory.instance
  copy(instance.bytes + start, value, length)
  instance.words[need + 1] = start
  instance.words[need + 2] = length
  self.values_used = self.values_used + length + (-length) % 4
  return status.OK
end

-- Most requests are asked for one thing, once. That is written without a loop, here and in `decide`: LuaJIT takes no loop into the
-- trace of a phase, and leaves a phase that begins one to its interpreter.
function Context:fill_in(request)
  local count = self:word(NEED_COUNT)
  local need = self:word(NEEDS) / 4
  local filled = self:fill_in_one(request, need)
  if count == 1 or filled < 0 then
    return filled
  end
  for i = 1, count - 1 do
    filled = self:fill_in_one(request, need + i * NEED_WORDS)
    if filled < 0 then
      return filled
    end
  end
  return status.OK
end

-- Answers a NEED, and goes on.
function Context:go_on(request)
  local filled = self:fill_in(request)
  if filled < 0 then
    return filled
  end
  return self.functions.njk_resume(self.memory.instance, self.address)
end

function Context:decide(host, host_length, target, target_length, https, random, now, request)
  local answer = route(self, host, host_length, target, target_length, https, random, now)
  if answer ~= NEED then
    return answer
  end
  answer = self:go_on(request)
  while answer == NEED do
    answer = self:go_on(request)
  end
  return answer
end

return Context
