--- How `/configuration/*` takes a change: checked whole, written as one batch, 201 when every worker has it.
local ngx = ngx or njt
local cjson = require "cjson.safe"
local answers = require "balancer.control.answer"
local body = require "balancer.control.body"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local state = require "balancer.control.state"
local store = require "balancer.state.store"

local answer = {}

local CREATED, BAD_REQUEST, TOO_LARGE, UNAVAILABLE, FULL = 201, 400, 413, 503, 507
--- Bytes of a body. 50,000 backends with ten endpoints each have half of it.
local MOST_BODY = 64 * 1024 * 1024
--- Values after which the other requests of a worker get their turn.
local TURN = 100

--- Lets other requests have their turn, when `count` is a multiple of some.
function answer.take_turns(count)
  if count % TURN == 0 then ngx.sleep(0) end
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

--- A record for a piece; nil where the shared state has exactly that. `content` nil: to be removed.
function answer.record(kind, key, content)
  local _, before = store.piece(record.name(kind, key))
  if before == content then return nil end
  if not content then return { op = record.REMOVE, kind = kind, key = key } end
  -- Only told apart from what was there before: no matter of secrecy.
  return { op = record.SET, kind = kind, key = key, content = content, digest = ngx.sha1_bin(content):sub(1, 8) }
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
  end, {})
  if not seq and refused == "locked" then return answers.refuse(UNAVAILABLE, "STATE_BUSY", "another writer is at work") end
  if not seq and refused ~= "no memory" then return answer.invalid(refused) end
  if not seq then return answers.refuse(FULL, "STATE_FULL", "the shared state has no room; nothing was taken") end
  follower.catch_up()
  local late = state.await_workers(seq)
  local failures = {}
  for _, one in ipairs(refused) do
    failures[#failures + 1] = { kind = one.kind, key = one.key, code = "STATE_FULL", message = "there is no room for it" }
  end
  state.add_worker_failures(seq, failures)
  local status = #refused > 0 and FULL or #failures > 0 and 500 or CREATED
  return answers.json(status, string.format(
    '{"seq":%d,%s,"late":%s,"failures":%s}', seq, counts(records), answers.array(late), answers.array(failures)
  ))
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
