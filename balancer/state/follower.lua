--- A worker's side of the shared state: takes over what has changed, and says how far it is.
--
-- Who serves requests calls `catch_up` at the start of each, so that a change acts on the next request. A timer does the same
-- where no request comes. Nothing here yields, so a request sees all of a batch or nothing of it.
local ngx = ngx or njt
local ffi = require "ffi"
local cjson = require "cjson.safe"
local jit = require "jit"
local bit = require "bit"
local acknowledgements = require "balancer.state.acknowledgements"
local record = require "balancer.state.record"
local store = require "balancer.state.store"
local workers = require "balancer.state.workers"
local bxor = bit.bxor

ffi.cdef "int poll(void *fds, unsigned long count, int milliseconds);"

local follower = {}

--- Seconds between looks at the shared state where no request comes.
local INTERVAL = 0.01
--- How long a worker that starts waits for a batch that is being written, in milliseconds.
local WAIT_FOR_WRITER = 200
--- What leads to others comes after them.
local ORDER = { record.CERTIFICATE, record.UPSTREAM, record.PEER_STATES, record.SHARD }
local NO_HANDLER = { load = function() return true end, drop = function() end }

--- By kind.
local handlers = {}
--- By name of the piece, the digest of what is in force here.
local loaded = {}
local low, high, count = 0, 0, 0
--- Number of the last batch that is in force here; nil before the first.
local in_force
--- See store.page.
local page

--- Sets what is done with pieces of a kind. All of it is called in this worker, must not yield, and may throw.
-- @param handler
--   `load(key, content)` puts a piece in force; true, or false, a code and a message: what stood there stays
--   `drop(key)` takes a piece out of force
--   `validate(key, content)` as load, without putting anything in force. Optional
function follower.on(kind, handler)
  handlers[kind] = handler
end

--- Calls a function of a handler: true, or false, a code and a message.
local function ask(kind, call, key, content)
  local fine, ok, code, message = pcall(call, key, content)
  if not fine then
    -- What is thrown over a certificate may hold a part of its key.
    local why = (kind == record.CERTIFICATE or kind == record.NAMED_CERTIFICATE) and "(not shown)" or tostring(ok)
    ngx.log(ngx.ERR, "a piece of kind ", kind, " can't be taken over: ", why)
    return false, "PROXY_STEP_FAILED", "a worker failed while it took the piece over; its log says more"
  end
  if ok then return true end
  return false, code or "PROXY_STEP_FAILED", message or "the worker refused the piece"
end

--- True if this worker could put the piece in force, else false, a code and a message.
function follower.validate(kind, key, content)
  local handler = handlers[kind]
  if not handler then return false, "PROXY_UNSUPPORTED", "pieces of kind " .. kind .. " are not known" end
  if not handler.validate then return true end
  return ask(kind, handler.validate, key, content)
end

local function add_to_sum(name, digest, change)
  local a, b = store.hash(name, digest)
  low, high, count = bxor(low, a), bxor(high, b), count + change
end

local function set_loaded(name, digest)
  local before = loaded[name]
  loaded[name] = digest
  if not store.is_summed(name) then return end
  if before then add_to_sum(name, before, -1) end
  if digest then add_to_sum(name, digest, 1) end
end

--- Brings one piece to what the shared state has. Appends to `failures`.
local function take(name, failures)
  local digest, content = store.piece(name)
  local before = loaded[name]
  if digest == before then return end
  local kind, key = string.match(name, "^(%d+):(.*)$")
  kind = tonumber(kind)
  local handler = handlers[kind] or NO_HANDLER
  if not digest then
    ask(kind, handler.drop, key)
    set_loaded(name, nil)
    return
  end
  local ok, code, message = ask(kind, handler.load, key, content)
  if not ok then
    failures[#failures + 1] = { kind = kind, key = key, code = code, message = message }
    return
  end
  set_loaded(name, digest)
  -- States are of peers, and these are others now.
  local states = record.name(record.PEER_STATES, key)
  if kind == record.UPSTREAM and loaded[states] then
    set_loaded(states, nil)
    take(states, failures)
  end
end

local function take_everything(failures)
  local by_kind = {}
  local there = {}
  for _, name in ipairs(store.names()) do
    there[name] = true
    local kind = tonumber(string.match(name, "^%d+"))
    by_kind[kind] = by_kind[kind] or {}
    table.insert(by_kind[kind], name)
  end
  for _, kind in ipairs(ORDER) do
    for _, name in ipairs(by_kind[kind] or {}) do take(name, failures) end
    by_kind[kind] = nil
  end
  for _, names in pairs(by_kind) do
    for _, name in ipairs(names) do take(name, failures) end
  end
  local gone = {}
  for name in pairs(loaded) do
    if not there[name] then gone[#gone + 1] = name end
  end
  for _, name in ipairs(gone) do take(name, failures) end
end

--- Nobody waits for a worker that is ending.
local function leave()
  acknowledgements.set_failures(nil)
  workers.leave()
end

local function acknowledge(failures)
  if ngx.worker.exiting() then return leave() end
  acknowledgements.set_failures(#failures > 0 and cjson.encode(failures) or nil, in_force)
  acknowledgements.acknowledge(in_force, low, high, count)
end

--- KiB of garbage that each batch has to take away; more than it leaves.
local GARBAGE = 64
--- KiB of garbage that requests may leave before the collector looks at all that a worker has. A request leaves 160 bytes, and a worker of
-- few hosts has 1 MiB: with the collector's own rule, to wait until memory has doubled, looking took more time than it saved.
local ROOM = 4096

--- The collector's pause: percent of what a worker has at which it begins anew. It is told at each look, for it holds from when the collector
-- has looked at everything: told once, of a worker that has little, it would let a large body (see control/body.lua) stay five times over.
local function set_pause()
  collectgarbage("setpause", math.max(200, math.floor(100 + 100 * ROOM / collectgarbage "count")))
end

local function advance(seq)
  local failures = {}
  if not in_force or seq < in_force then
    take_everything(failures)
    -- Nobody waits for an answer to these.
    if #failures > 0 then ngx.log(ngx.ERR, "pieces of the state can't be put in force: ", cjson.encode(failures)) end
  else
    for number = in_force + 1, seq do
      local names = store.log(number)
      if not names then
        take_everything(failures)
        break
      end
      for name in names do take(name, failures) end
    end
  end
  in_force = seq
  acknowledge(failures)
  -- The collector by itself waits until memory has doubled. It does not know of certificates, whose memory is OpenSSL's.
  collectgarbage("step", GARBAGE)
end

--- Puts in force what has changed since the last call.
local function catch_up()
  local seq = store.seq()
  if seq ~= in_force then advance(seq) end
end

-- Compiled these would only take memory, more of it with each way through them.
for _, one in ipairs { ask, add_to_sum, set_loaded, take, take_everything, acknowledge, set_pause, advance, catch_up } do jit.off(one, true) end

--- The same, for each request: cheap where nothing has changed.
function follower.catch_up()
  if not page or page[0] ~= in_force then catch_up() end
end

--- `premature`: the worker has been told to end.
local function tick(premature)
  if premature then return leave() end
  catch_up()
  set_pause()
end

--- Brings a worker that starts to the full state, before it serves anybody, and keeps it there. Nothing in processes that serve
-- no requests.
function follower.start()
  if not ngx.worker.id() then return end
  workers.enter()
  page = store.page()
  local waited = 0
  while store.is_unfinished() and waited < WAIT_FOR_WRITER do
    ffi.C.poll(nil, 0, 1)
    waited = waited + 1
  end
  -- Once more if a batch came in between: pieces of two batches may have been read.
  repeat
    in_force = nil
    catch_up()
  until in_force == store.seq()
  local ok, why = ngx.timer.every(INTERVAL, tick)
  if not ok then ngx.log(ngx.ERR, "no timer for the shared state: ", why) end
end

--- What is in force in this worker: number of the last batch, checksum and number of pieces.
function follower.status()
  return in_force, store.sum_text(low, high), count
end

return follower
