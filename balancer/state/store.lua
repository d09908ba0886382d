--- The state that all workers share, in the dict `njet_kic_state`. It outlives workers and HUP.
--
--   p<kind>:<key>  digest (8 bytes) .. content of a piece
--   log:<seq>      names of the pieces that batch <seq> changed, one a line; `*`: anything. The last ones are kept
--   seq            number of the last whole batch, written last: all that workers look at. It stands in a page of shared memory, too,
--                  where looking takes no lock
--   sum, count     checksum over names and digests of all pieces, and their number
--   generation     what the controller calls this state
--   since          when this state began, in milliseconds
--   by_others      number of batches that were posted by others than the controller
--   e:<worker>     what that worker could not load, see balancer.state.acknowledgements
--   lock           who writes
--
-- The log of a batch is written before its pieces: where the log is ahead of `seq` a batch is being written, or its writer
-- has died, and the next batch takes its names over. So no worker ever misses a piece.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local bit = require "bit"
local crc32 = ngx.crc32_long
local bxor, rol, tohex = bit.bxor, bit.rol, bit.tohex
local byte, gmatch, match, sub = string.byte, string.gmatch, string.match, string.sub
local claim = require "balancer.state.claim"
local record = require "balancer.state.record"

local dict = ngx.shared.njet_kic_state

local store = {}

--- The page, its first number being `seq`; nil before `open`, and where the system has none.
local page

--- Batches whose log is kept. A worker further behind loads everything.
local LOGS_KEPT = 32
--- Bytes of the dict that pieces leave free, for logs and what workers say.
local RESERVE = 128 * 1024
--- Who writes.
local LOCK = "lock"
--- Bytes of a dict's node beside key and value, rounded up; of a page of its memory.
local NODE, PAGE = 128, 4096
local EVERYTHING = "*"
local DIGEST = 8
--- `p`, with which the keys of pieces begin; no other key does.
local P = 0x70
local COLON = 0x3a
--- Peer states.
local LAST_SUMMED = 0x34

local function word(text, at)
  local a, b, c, d = byte(text, at, at + 3)
  return bit.bor(a, bit.lshift(b, 8), bit.lshift(c, 16), bit.lshift(d, 24))
end

--- Two 32-bit words to be joined by XOR over all pieces. The same in controller/proxies/nginx/state-sum.ts.
-- @param name `<kind>:<key>`
function store.hash(name, digest)
  local hash = bit.tobit(crc32(name))
  return bxor(hash, word(digest, 1)), bxor(rol(hash, 16), word(digest, 5))
end

--- True for pieces of kinds that the controller gives. Others come and go beside it, and stand in no checksum.
-- @param name `<kind>:<key>`
function store.is_summed(name)
  return byte(name, 2) == COLON and byte(name) <= LAST_SUMMED
end

--- 16 hex digits of two words.
function store.sum_text(low, high)
  return tohex(low) .. tohex(high)
end

local function read_sum()
  local text = dict:get("sum") or "0000000000000000"
  return bit.tobit(tonumber(sub(text, 1, 8), 16)), bit.tobit(tonumber(sub(text, 9), 16)), dict:get("count") or 0
end

local function set_seq(seq)
  dict:safe_set("seq", seq)
  if page then page[0] = seq end
end

--- Makes the page, or finds that of a master that reads its configuration anew; in `init_by_lua`, before there are workers. `library`: the
-- native core, see balancer.core.native. Workers of an older library have a page of their own: they look at the dict from time to time.
function store.open(library)
  local made = library.functions.njk_shared_page()
  page = made ~= nil and made or nil
  if page and page[0] == 0 then page[0] = store.seq() end
end

--- Shared memory whose first number is that of the last whole batch; nil where there is none.
function store.page()
  return page
end

--- True where nothing was ever written: NGINX has really been started, and not only been told to read its configuration.
function store.is_new()
  return dict:get("seq") == nil
end

--- Number of the last whole batch.
function store.seq()
  return dict:get("seq") or 0
end

function store.generation()
  return dict:get("generation") or ""
end

--- When this state began, in milliseconds, and how many batches others than the controller have posted since.
function store.posts()
  return dict:get("since") or 0, dict:get("by_others") or 0
end

--- Names of the pieces that batch `seq` changed, an iterator; nil where they are not known, or anything may have changed.
function store.log(seq)
  local names = dict:get("log:" .. seq)
  if not names or names == EVERYTHING then return nil end
  return gmatch(names, "[^\n]+")
end

--- True while a batch is being written, or after its writer has died.
function store.is_unfinished()
  return dict:get("log:" .. store.seq() + 1) ~= nil
end

--- Digest and content of a piece; nil if there is none.
function store.piece(name)
  local value = dict:get("p" .. name)
  if not value then return nil end
  return sub(value, 1, DIGEST), sub(value, DIGEST + 1)
end

--- Names of all pieces, as an array. Holds all workers up for some milliseconds where there are tens of thousands.
function store.names()
  local names, count = {}, 0
  for _, key in ipairs(dict:get_keys(0)) do
    if byte(key) == P then
      count = count + 1
      names[count] = sub(key, 2)
    end
  end
  return names
end

--- Checksum (16 hex digits) and number of all pieces.
function store.sum()
  local low, high, count = read_sum()
  return store.sum_text(low, high), count
end

--- Puts a value in place, or leaves what stood there. The dict itself drops the old value before it looks for room.
local function put(key, value)
  local old = dict:get(key)
  if (not old or #old ~= #value) and dict:free_space() < RESERVE + #value then return false end
  if dict:safe_set(key, value) then return true end
  if old and not dict:safe_set(key, old) then
    ngx.log(ngx.ERR, "the shared state has no room left for what it held of ", match(key, "^p%d+"))
  end
  return false
end

--- Bytes of the dict that a value may take: its slab is a power of two, or whole pages.
local function size_of(value)
  local size = #value + NODE
  if size > PAGE / 2 then return math.ceil(size / PAGE) * PAGE end
  local slab = 64
  while slab < size do slab = slab * 2 end
  return slab
end

--- True if there is room for all of `records`, so that none of them has to be refused.
function store.has_room(records)
  local free = dict:free_space() - RESERVE
  for _, one in ipairs(records) do
    if one.op == record.SET then
      local name = record.name(one.kind, one.key)
      local old = dict:get("p" .. name)
      if not old or #old ~= #one.content + DIGEST then
        free = free - size_of(name .. one.content)
        if free < 0 then return false end
      end
    end
  end
  return true
end

--- One record into the dict. Answers the new checksum and count, and whether it was taken.
local function write_piece(one, low, high, count)
  local name = record.name(one.kind, one.key)
  local key = "p" .. name
  local old = dict:get(key)
  local is_set = one.op == record.SET
  if is_set then
    if not put(key, one.digest .. one.content) then return low, high, count, false end
  elseif old then
    dict:delete(key)
  end
  if not store.is_summed(name) then return low, high, count, true end
  if is_set then
    local a, b = store.hash(name, one.digest)
    low, high, count = bxor(low, a), bxor(high, b), count + 1
  end
  if old then
    local a, b = store.hash(name, old)
    low, high, count = bxor(low, a), bxor(high, b), count - 1
  end
  return low, high, count, true
end

--- Checksum and number of all pieces, from the pieces themselves.
local function summed()
  local low, high, count = 0, 0, 0
  for _, name in ipairs(store.names()) do
    if store.is_summed(name) then
      local a, b = store.hash(name, (store.piece(name)))
      low, high, count = bxor(low, a), bxor(high, b), count + 1
    end
  end
  return low, high, count
end

--- Writes a batch. Never yields.
-- @param records pieces that were validated, in the order in which they are safe to appear; or a function that makes them, which
--   is called when nobody else can write, and answers nil and why where there is nothing to be written
-- @param options `generation`: what the state is called then; `everything`: workers compare all pieces, not only these;
--   `posted`: it comes from others than the controller
-- @return the number of the batch and an array of the records for which there is no room, or nil and why:
--   "locked" (somebody else writes, try again) or "no memory" (nothing was taken)
function store.write(records, options)
  if not claim.take(LOCK) then return nil, "locked" end
  if type(records) == "function" then
    local fine, made, why = pcall(records)
    if not fine or not made then
      claim.release(LOCK)
      if not fine then error(made, 0) end
      return nil, why
    end
    records = made
  end
  local seq = store.seq() + 1
  local log = "log:" .. seq
  local left = dict:get(log)
  local names = options.everything and EVERYTHING or left
  if names ~= EVERYTHING then
    local list = { left }
    for _, one in ipairs(records) do list[#list + 1] = record.name(one.kind, one.key) end
    names = table.concat(list, "\n")
  end
  -- The oldest goes first, to make room.
  dict:delete("log:" .. seq - LOGS_KEPT)
  if not dict:safe_set(log, names) then
    claim.release(LOCK)
    return nil, "no memory"
  end
  local refused = {}
  local low, high, count = read_sum()
  for _, one in ipairs(records) do
    local taken
    low, high, count, taken = write_piece(one, low, high, count)
    if not taken then refused[#refused + 1] = one end
  end
  -- Who died on the way has not come to sum up.
  if left or options.everything then low, high, count = summed() end
  dict:safe_set("sum", store.sum_text(low, high))
  dict:safe_set("count", count)
  if options.posted then dict:incr("by_others", 1, 0) end
  if options.generation then dict:safe_set("generation", options.generation) end
  set_seq(seq)
  claim.release(LOCK)
  return seq, refused
end

--- Fills a new store, before there are workers. `pieces` gives one record after another.
-- @return number of records for which there is no room
function store.fill(pieces)
  local refused = 0
  local low, high, count = 0, 0, 0
  for one in pieces do
    local taken
    low, high, count, taken = write_piece(one, low, high, count)
    if not taken then refused = refused + 1 end
  end
  dict:safe_set("sum", store.sum_text(low, high))
  dict:safe_set("count", count)
  dict:safe_set("since", math.floor(ngx.now() * 1000))
  dict:safe_set("by_others", 0)
  set_seq(0)
  return refused
end

return store
