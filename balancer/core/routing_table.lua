-- The routing state of one worker over an instance of the core: shards, peer sets and one context. Who has a RoutingTable
-- needs nothing else of this folder.
--
--   RoutingTable.new(library, options) -> table, or nil and what is wrong. `library` is from native.load. Options:
--     pages     most pages of memory (64 KiB each)
--     restore   function(table): puts shards, peer sets and states back after the core has trapped; see below
--
--   Changes. They answer true, or nil and what is wrong; the table is then as before.
--   table:load_shard(image)            bytes of a shard image, which takes the place of the one with its host pattern
--   table:remove_shard(kind, host)     host pattern: 0 exact, 1 or 2 wildcard (host is the suffix), 3 any host, 4 default
--   table:validate_shard(image)        what load_shard would say, and nothing is changed
--   table:validate_peers(image)
--   table:load_peers(image)            bytes of a peer set image, which takes the place of the one with its key
--   table:remove_peers(key)
--   table:set_peer_state(key, id, state, now)  what active checks have found: "unchecked", "up", "down" or "draining"; id is
--                                      `ip:port` or `[ip]:port`. Unknown upstreams and peers are passed over
--
--   Requests. None of these yields.
--   RoutingTable.new_decision()        -> a table for decide, see decision.lua
--   table:decide(host, target, https, random, now, request, decision) -> decision, or nil and what is wrong. For host to
--                                      request see context.lua; `decision` is a table to be written over, see decision.lua
--   table:decide_bytes(host, host_length, target, target_length, https, random, now, request, decision) -> the same, of bytes
--                                      that stand at an address. Where the decision is to send `target` on as it is,
--                                      decision.target is false
--   table:pick_peer(key, hash, tried, random, now, choice) -> choice, with peer, token, position and session or false; or nil and
--                                      "busy" (all that could be used have as many requests under way as they may), "none"
--                                      (no peer is left), or what is wrong. hash: of the decision, or false; tried: list of
--                                      tokens that are not wanted
--   table:peer_done(token, failed, now) a try with a peer that was given here is over; to be called once for each
--   table:peers_of(key)                -> list of {peer, state, conns, out, token} in canonical order
--   table:release()                    lets go of what the last decision refers to; for a worker that stays idle
--   table:memory_used()                -> bytes
--
-- A core that traps is replaced by a new one, empty at first, which `restore` fills; the call that trapped answers nil.
-- table.traps counts that. Tokens from before stand for nothing then, and peer_done with them does nothing.

local ffi = require "ffi"
local Context = require "balancer.core.context"
local Decision = require "balancer.core.decision"
local ImageCache = require "balancer.core.image_cache"
local Memory = require "balancer.core.memory"
local PeerSet = require "balancer.core.peer_set"
local ShardNames = require "balancer.core.shard_names"
local status = require "balancer.core.status"

local copy = ffi.copy
-- Called by their names, and not as methods: for those LuaJIT looks at the table, at its metatable and at what stands in that.
local decide, read, read_plain, set_time = Context.decide, Decision.read, Decision.read_plain, Context.set_time
local OK, PLAIN, TOO_LONG = status.OK, status.PLAIN, Context.TOO_LONG
local COMPARE = 0
local FIRST_SCRATCH = 1024
local STATES = { unchecked = 0, up = 1, down = 2, draining = 3 }
local STATE_NAMES = { [0] = "unchecked", "up", "down", "draining" }

local RoutingTable = { new_decision = Decision.new }
RoutingTable.__index = RoutingTable

-- Makes a fresh core with an empty table; answers what is wrong, if anything.
function RoutingTable:begin()
  local memory, err = Memory.new(self.library, self.pages)
  if not memory then
    return err
  end
  local address = self.functions.njk_table_new(memory.instance) % 4294967296
  local context = address ~= 0 and memory.instance.trap == 0 and Context.new(memory, address)
  local scratch = context and memory:alloc(FIRST_SCRATCH)
  if not scratch then
    memory:close()
    return status.text(status.MEMORY)
  end
  if self.memory then
    self.memory:close()
  end
  self.memory, self.address, self.context = memory, address, context
  self.scratch, self.scratch_size = scratch, FIRST_SCRATCH
  self.shards:clear()
  self.sets:clear()
  return nil
end

function RoutingTable.new(library, options)
  options = options or {}
  local self = setmetatable({
    library = library,
    functions = library.functions,
    pages = options.pages,
    restore = options.restore,
    traps = 0,
    shards = ImageCache.new(ShardNames.read),
    sets = ImageCache.new(PeerSet.read),
  }, RoutingTable)
  local err = self:begin()
  if err then
    return nil, err
  end
  return self
end

-- What is answered for a status below zero; a core that has trapped is replaced.
function RoutingTable:failure(code)
  local memory = self.memory
  if memory.instance.trap == 0 then
    return nil, status.text(code)
  end
  local what = "the core trapped: " .. self.library.trap_text(memory.instance)
  self.traps = self.traps + 1
  local err = self:begin()
  if err then
    return nil, what .. "; it could not be replaced: " .. err
  end
  -- A core that traps again while it is filled is not filled once more: the request at hand comes to an end.
  if self.restore and not self.restoring then
    self.restoring = true
    local restored, problem = pcall(self.restore, self)
    self.restoring = false
    if not restored then
      what = what .. "; it could not be filled again: " .. tostring(problem)
    end
  end
  return nil, what
end

function RoutingTable:changed(code)
  self.context:changed()
  self.shards:changed()
  self.sets:changed()
  if code < 0 then
    return self:failure(code)
  end
  return true
end

function RoutingTable:load_shard(image)
  local memory = self.memory
  local at = memory:place(image)
  if not at then
    return self:failure(status.MEMORY)
  end
  local code = self.functions.njk_shard_load(memory.instance, self.address, at, #image, COMPARE)
  memory:free(at)
  return self:changed(code)
end

function RoutingTable:validate_shard(image)
  local memory = self.memory
  local at = memory:place(image)
  if not at then
    return self:failure(status.MEMORY)
  end
  local code = self.functions.njk_shard_validate(memory.instance, at, #image, COMPARE)
  memory:free(at)
  if code < 0 then
    return self:failure(code)
  end
  return true
end

function RoutingTable:validate_peers(image)
  local memory = self.memory
  local at = memory:place(image)
  if not at then
    return self:failure(status.MEMORY)
  end
  local code = self.functions.njk_peer_set_validate(memory.instance, at, #image)
  memory:free(at)
  if code < 0 then
    return self:failure(code)
  end
  return true
end

function RoutingTable:load_peers(image)
  local memory = self.memory
  local at = memory:place(image)
  if not at then
    return self:failure(status.MEMORY)
  end
  local code = self.functions.njk_peers_load(memory.instance, self.address, at, #image)
  memory:free(at)
  return self:changed(code)
end

-- Room for arguments that a call takes by address; answers where it is, or nil.
function RoutingTable:room(size)
  if size > self.scratch_size then
    local grown = self.memory:alloc(size * 2)
    if not grown then
      return nil
    end
    self.memory:free(self.scratch)
    self.scratch, self.scratch_size = grown, size * 2
  end
  return self.scratch
end

function RoutingTable:put(text)
  local at = self:room(#text)
  if at then
    self.memory:put(at, text)
  end
  return at
end

function RoutingTable:remove_shard(kind, host)
  local at = self:put(host)
  if not at then
    return self:failure(status.MEMORY)
  end
  return self:changed(self.functions.njk_shard_remove(self.memory.instance, self.address, kind, at, #host))
end

function RoutingTable:remove_peers(key)
  local at = self:put(key)
  if not at then
    return self:failure(status.MEMORY)
  end
  return self:changed(self.functions.njk_peers_remove(self.memory.instance, self.address, at, #key))
end

-- Address of the peer set of an upstream as it is now; nil if there is none.
function RoutingTable:find_peers(key)
  local at = self:put(key)
  local image = at and self.functions.njk_peers_find(self.memory.instance, self.address, at, #key) or 0
  if self.memory.instance.trap ~= 0 then
    self:failure(status.TRAPPED)
    return nil
  end
  return image ~= 0 and image % 4294967296 or nil
end

function RoutingTable:set_peer_state(key, id, state, now)
  local number = STATES[state]
  if not number then
    return nil, "no state of a peer: " .. tostring(state)
  end
  local image = self:find_peers(key)
  if not image then
    return true
  end
  local memory = self.memory
  local index = self.sets:get(memory, image):index_of(memory, image, id)
  if not index then
    return true
  end
  local token = PeerSet.token(memory, image, index)
  local code = self.functions.njk_peer_state(memory.instance, self.address, token, number, now % 4294967296)
  if code < 0 then
    return self:failure(code)
  end
  return true
end

function RoutingTable:decide(host, target, https, random, now, request, decision)
  local decided, err = self:decide_bytes(host, #host, target, #target, https, random, now, request, decision)
  if decided and decided.action == "proxy" and not decided.target then
    -- With a target it is none that the next may be written over.
    decided.target, decided.plain = target, false
  end
  return decided, err
end

function RoutingTable:decide_bytes(host, host_length, target, target_length, https, random, now, request, decision)
  local code = decide(self.context, host, host_length, target, target_length, https, random, now, request)
  if code == PLAIN then
    return read_plain(self, decision)
  end
  if code == OK then
    read(self, decision, target, target_length)
    if self.memory.instance.trap == 0 then
      return decision
    end
    code = status.TRAPPED
  elseif code == TOO_LONG then
    return Decision.too_long(decision)
  end
  return self:failure(code)
end

function RoutingTable:pick_peer(key, hash, tried, random, now, choice)
  local count = #tried
  local at = self:room(count * 4 + #key)
  if not at then
    return self:failure(status.MEMORY)
  end
  local instance = self.memory.instance
  for i = 1, count do
    instance.words[at / 4 + i - 1] = tried[i]
  end
  copy(instance.bytes + (at + count * 4), key, #key)
  local context = self.context
  set_time(context, now)
  local code = self.functions.njk_peer_pick(
    instance,
    context.address,
    at + count * 4,
    #key,
    hash and 1 or 0,
    hash or 0,
    at,
    count,
    random
  )
  if code == status.OK then
    Decision.read_peer(self, choice)
    return choice
  end
  if code == status.BUSY then
    return nil, "busy"
  end
  if code == status.STATE then
    return nil, "none"
  end
  return self:failure(code)
end

function RoutingTable:peer_done(token, failed, now)
  local context = self.context
  set_time(context, now)
  local code = self.functions.njk_peer_done(self.memory.instance, context.address, token, failed and 1 or 0)
  if code < 0 then
    return self:failure(code)
  end
  return true
end

function RoutingTable:peers_of(key)
  local peers = {}
  local image = self:find_peers(key)
  if not image then
    return peers
  end
  local memory = self.memory
  local set = self.sets:get(memory, image)
  for index = 0, set.count - 1 do
    local token = PeerSet.token(memory, image, index)
    local word = self.functions.njk_peer_status(memory.instance, self.context.address, token)
    if word < 0 then
      self:failure(word)
      return {}
    end
    peers[index + 1] = {
      peer = set:peer(memory, image, index),
      state = STATE_NAMES[word % 4],
      out = math.floor(word / 4) % 2 == 1,
      conns = math.floor(word / 8),
      token = token,
    }
  end
  return peers
end

function RoutingTable:release()
  self.functions.njk_release_decision(self.memory.instance, self.context.address)
end

function RoutingTable:memory_used()
  return self.functions.njk_memory_used(self.memory.instance) % 4294967296
end

return RoutingTable
