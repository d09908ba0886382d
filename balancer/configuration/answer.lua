--- How `/configuration/*` takes a change: checked whole, written as one batch, 201 when every worker has it.
local ngx = ngx or njt
local cjson = require "cjson.safe"
local answers = require "balancer.control.answer"
local body = require "balancer.control.body"
local claim = require "balancer.state.claim"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local state = require "balancer.control.state"
local store = require "balancer.state.store"

local answer = {}

local CREATED, BAD_REQUEST, TOO_LARGE, UNAVAILABLE, FULL = 201, 400, 413, 503, 507
--- Bytes of a body. 50,000 backends with ten endpoints each have half of it.
local MOST_BODY = 64 * 1024 * 1024
--- Values after which the other requests of a worker get their turn.
local TURN = 20
--- Seconds. With 0, an NGINX without OpenResty's patches comes back before it looks at any connection.
local PAUSE = 0.001
--- Records that all workers take over at once: some milliseconds of each.
local SLICE = 32
--- Seconds that another post may take, and between looks whether it is over.
local SLICES_TIME, WAIT = 30, 0.01

--- Lets other requests have their turn, when `count` is a multiple of some.
function answer.take_turns(count)
  if count % TURN == 0 then ngx.sleep(PAUSE) end
end

function answer.invalid(message)
  return answers.refuse(BAD_REQUEST, "CONFIGURATION_INVALID", message .. "; nothing was taken")
end

--- The body as cjson has it. Does not come back where it is no JSON of the kind that is wanted: "[" or "{". cjson tells an empty
-- array from an empty object as little as Lua does.
function answer.json_body(opening)
  local stated = tonumber(ngx.var.content_length) or 0
  local text = ""
  if stated <= MOST_BODY then text = body.read() end
  if not text then return answers.refuse(500, "STATE_BODY", "the body can't be read from its file") end
  if stated > MOST_BODY or #text > MOST_BODY then
    return answers.refuse(TOO_LARGE, "CONFIGURATION_INVALID", "the body is too large; nothing was taken")
  end
  local value = cjson.decode(text)
  if type(value) ~= "table" then return answer.invalid("the body is no JSON") end
  if text:match("^%s*(.)") ~= opening then
    return answer.invalid(opening == "[" and "the body must be an array" or "the body must be an object")
  end
  return value, text
end

local function no_room(one)
  return { kind = one.kind, key = one.key, code = "STATE_FULL", message = "there is no room for it" }
end

local function told(seq, counts, late, failures)
  return string.format('{"seq":%d,%s,"late":%s,"failures":%s}', seq, counts, answers.array(late), answers.array(failures))
end

--- A record for a piece; nil where the shared state has exactly that. `content` nil: to be removed.
function answer.record(kind, key, content)
  local _, before = store.piece(record.name(kind, key))
  if before == content then return nil end
  if not content then return { op = record.REMOVE, kind = kind, key = key } end
  -- Only told apart from what was there before: no matter of secrecy.
  return { op = record.SET, kind = kind, key = key, content = content, digest = ngx.sha1_bin(content):sub(1, 8) }
end

local function failure(code, message)
  return cjson.encode({ code = code, message = message })
end

--- Writes a slice. Its number and what was refused; nil and why where it can't be written.
local function write_slice(slice)
  return state.write(function()
    follower.catch_up()
    return slice
  end, { posted = true })
end

--- Status and text of the answer.
local function write_slices(name, make, counts)
  follower.catch_up()
  local records = make()
  if not store.has_room(records) then
    return FULL, failure("STATE_FULL", "the shared state has no room; nothing was taken")
  end
  local seq, late, failures, full = store.seq(), {}, {}, false
  for first = 1, #records, SLICE do
    local slice = { unpack(records, first, math.min(first + SLICE - 1, #records)) }
    local written, refused = write_slice(slice)
    if not written then
      return UNAVAILABLE, failure("STATE_BUSY", "another writer is at work; " .. first - 1 .. " changes of " .. #records .. " were taken")
    end
    seq = written
    for _, one in ipairs(refused) do failures[#failures + 1] = no_room(one) end
    full = full or #refused > 0
    follower.catch_up()
    -- Who is late once is not waited for again and again.
    if #late == 0 then late = state.await_workers(seq) end
    state.add_worker_failures(seq, failures)
    claim.keep(name)
    ngx.sleep(PAUSE)
  end
  local status = full and FULL or #failures > 0 and 500 or CREATED
  return status, told(seq, counts(records), late, failures)
end

--- Ends the request: `make()` gives the records, or nil and what is wrong, and is called when nobody else can change anything.
-- Nothing in it may yield.
-- `counts(records)`: what is told of them, as members of a JSON object.
function answer.take(make, counts)
  local records
  local seq, refused = state.write(function()
    follower.catch_up()
    local why
    records, why = make()
    if not records then return nil, why end
    if not store.has_room(records) then return nil, "no memory" end
    return records
  end, { posted = true })
  if not seq and refused == "locked" then return answers.refuse(UNAVAILABLE, "STATE_BUSY", "another writer is at work") end
  if not seq and refused ~= "no memory" then return answer.invalid(refused) end
  if not seq then return answers.refuse(FULL, "STATE_FULL", "the shared state has no room; nothing was taken") end
  follower.catch_up()
  local late = state.await_workers(seq)
  local failures = {}
  for _, one in ipairs(refused) do failures[#failures + 1] = no_room(one) end
  state.add_worker_failures(seq, failures)
  local status = #refused > 0 and FULL or #failures > 0 and 500 or CREATED
  return answers.json(status, told(seq, counts(records), late, failures))
end

--- The same for records of any number, for which the other requests of no worker are held up: in slices, each of which every worker
-- has before the next one comes. Requests may see the first of them without the last. `name`: what no other worker may change
-- meanwhile. `make()` gives the records, and may yield. A client that leaves changes nothing: what is begun is brought to its end.
function answer.take_in_slices(name, make, counts)
  ngx.on_abort(function() end)
  local deadline = ngx.now() + SLICES_TIME
  while not claim.take(name) do
    if ngx.now() > deadline then return answers.refuse(UNAVAILABLE, "STATE_BUSY", "another post is under way") end
    ngx.sleep(WAIT)
  end
  local status, text
  local fine, why = pcall(function() status, text = write_slices(name, make, counts) end)
  claim.release(name)
  if not fine then error(why, 0) end
  return answers.json(status, text)
end

--- Numbers of pieces of `kind` that were set and removed.
function answer.counts(kind, records)
  local set, removed = 0, 0
  for _, one in ipairs(records) do
    if one.kind == kind then
      if one.op == record.SET then set = set + 1 else removed = removed + 1 end
    end
  end
  return string.format('"changed":%d,"removed":%d', set, removed)
end

return answer
