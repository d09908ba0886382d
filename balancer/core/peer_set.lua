-- What the image of a peer set says: key, text for people, and its peers, each read when it is asked for the first time.
--
--   PeerSet.read(memory, image)        -> set, with `key` and `display`
--   set:peer(memory, image, index)     -> {id, address, port, weight, draining, session}; `id` is `ip:port` or `[ip]:port`,
--                                         `session` the value of the session cookie that leads to it, where the set has one
--   set:index_of(memory, image, id)    -> index of the peer with this id, or nil
--   PeerSet.token(memory, image, index) -> what stands for the peer as long as it is in its upstream. It is not kept here:
--                                         a set that comes again has other tokens.

local bit = require "bit"

local band = bit.band
local rshift = bit.rshift
local format = string.format

-- Offsets of the header and of the record of a peer (core-wasm/ABI.md, "Peer sets and rings").
local SIZE = 16
local FLAGS = 20
local PEER_COUNT = 24
local KEY = 64
local DISPLAY = 72
local HEADER = 96
local RECORD = 32
local STICKY = 8
local DRAINING = 1

local PeerSet = {}
PeerSet.__index = PeerSet

function PeerSet.read(memory, image)
  return setmetatable({
    key = memory:text(image + memory:word(image + KEY), memory:word(image + KEY + 4)),
    display = memory:text(image + memory:word(image + DISPLAY), memory:word(image + DISPLAY + 4)),
    count = memory:word(image + PEER_COUNT),
    sticky = band(rshift(memory:word(image + FLAGS), 16), STICKY) ~= 0,
    peers = {},
  }, PeerSet)
end

function PeerSet:peer(memory, image, index)
  local known = self.peers[index]
  if known then
    return known
  end
  local at = image + HEADER + index * RECORD
  local port_weight = memory:word(at + 4)
  local lengths = memory:word(at + 8)
  local id = memory:text(image + memory:word(at), band(lengths, 255))
  -- Of `[address]:port` or `address:port`.
  local from = id:byte(1) == 91 and 2 or 1
  local peer = {
    id = id,
    address = id:sub(from, from + band(rshift(lengths, 8), 255) - 1),
    port = band(port_weight, 65535),
    weight = rshift(port_weight, 16),
    draining = band(rshift(lengths, 24), DRAINING) ~= 0,
    session = self.sticky and format("%08x", memory:word(at + 12)) or nil,
  }
  self.peers[index] = peer
  return peer
end

function PeerSet:index_of(memory, image, id)
  local indexes = self.indexes
  if not indexes then
    indexes = {}
    for index = 0, self.count - 1 do
      indexes[self:peer(memory, image, index).id] = index
    end
    self.indexes = indexes
  end
  return indexes[id]
end

function PeerSet.token(memory, image, index)
  -- Tokens stand behind the image, at the next multiple of 4.
  local size = memory:word(image + SIZE)
  return memory:word(image + size + band(-size, 3) + index * 4)
end

return PeerSet
