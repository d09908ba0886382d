--- `/state`: how the controller changes the shared state, and sees what it is. Contents are never given back.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local cjson = require "cjson.safe"
local acknowledgements = require "balancer.state.acknowledgements"
local answer = require "balancer.control.answer"
local body = require "balancer.control.body"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local store = require "balancer.state.store"
local master_pid = require("ngx.process").get_master_pid
local tohex = require("bit").tohex

local state = {}

--- Seconds that workers have to acknowledge a batch.
local ACKNOWLEDGE_TIME = 5
--- Seconds that another writer may take.
local WRITER_TIME = 5
local POLL = 0.001
--- A look whether late workers are still there takes a file read for each.
local POLLS_UNTIL_SURE = 16
local GENERATION = "^[%w._:-]*$"
local LONGEST_GENERATION = 256

--- The state in short: `{generation, seq, sum, count, since, posts, master, workers}` as members of a JSON object.
local function summary(seq)
  local sum, count = store.sum()
  local since, posts = store.posts()
  return string.format(
    '"generation":%s,"seq":%d,"sum":"%s","count":%d,"since":%.0f,"posts":%d,"master":%d,"workers":%s',
    cjson.encode(store.generation()), seq, sum, count, since, posts, master_pid(), answer.array(acknowledgements.workers())
  )
end

local function hex(digest)
  return (digest:gsub(".", function(c) return tohex(c:byte(), 2) end))
end

--- `GET /state`: the state in short, and with `?pieces` the digest of each piece.
function state.get()
  local pieces = ""
  if ngx.var.args == "pieces" then
    local digests = {}
    for _, name in ipairs(store.names()) do
      local digest = store.piece(name)
      -- It may have gone since.
      if digest then digests[name] = hex(digest) end
    end
    pieces = ',"pieces":' .. (next(digests) and cjson.encode(digests) or "{}")
  end
  return answer.json(ngx.HTTP_OK, "{" .. summary(store.seq()) .. pieces .. "}")
end

--- Splits records into those to be taken and failures.
local function validate(records)
  local good, failures = {}, {}
  for _, one in ipairs(records) do
    local ok, code, message = true, nil, nil
    if one.op == record.SET then ok, code, message = follower.validate(one.kind, one.key, one.content) end
    if ok then
      good[#good + 1] = one
    else
      failures[#failures + 1] = { kind = one.kind, key = one.key, code = code, message = message }
    end
  end
  return good, failures
end

--- Writes a batch, waiting while somebody else writes. As store.write.
local function write(records, options)
  local deadline = ngx.now() + WRITER_TIME
  while true do
    local seq, refused = store.write(records, options)
    if seq or refused ~= "locked" or ngx.now() > deadline then return seq, refused end
    ngx.sleep(POLL)
    ngx.update_time()
  end
end

--- Waits until all workers have acknowledged batch `seq`: ids of those that have not. Who has died meanwhile is not waited for.
local function await_workers(seq)
  local deadline = ngx.now() + ACKNOWLEDGE_TIME
  local late = acknowledgements.late_workers(seq)
  local polls = 0
  while #late > 0 and ngx.now() < deadline and not ngx.worker.exiting() do
    ngx.sleep(POLL)
    polls = polls + 1
    late = acknowledgements.late_workers(seq, polls % POLLS_UNTIL_SURE == 0)
  end
  return late
end

--- What workers could not load of a batch, each piece once.
local function add_worker_failures(seq, failures)
  local said = {}
  for _, json in ipairs(acknowledgements.failures(seq)) do
    for _, failure in ipairs(cjson.decode(json) or {}) do
      local name = record.name(failure.kind, failure.key)
      if not said[name] then failures[#failures + 1] = failure end
      said[name] = true
    end
  end
end

--- `POST /state`: records, all that can be taken. `X-Njet-Generation` is what the state is called afterwards. With
-- `?everything`, workers compare all they hold with the shared state. Answers when every worker has what was taken, or has had
-- time for it: `late` are the ids of those that have not.
function state.post()
  local generation = ngx.var.http_x_njet_generation
  if generation and (#generation > LONGEST_GENERATION or not generation:find(GENERATION)) then
    return answer.refuse(ngx.HTTP_BAD_REQUEST, "STATE_GENERATION", "a generation is letters, digits and ._:-, 256 at most")
  end
  local text = body.read()
  if not text then return answer.refuse(500, "STATE_BODY", "the body can't be read from its file") end
  local records, why = record.read_all(text)
  if not records then return answer.refuse(ngx.HTTP_BAD_REQUEST, "STATE_RECORDS", why .. "; nothing was taken") end
  local good, failures = validate(records)
  local seq, refused = write(good, { generation = generation, everything = ngx.var.args == "everything" })
  if not seq then
    if refused == "locked" then return answer.refuse(503, "STATE_BUSY", "another writer is at work") end
    return answer.refuse(507, "STATE_FULL", "the shared state has no room; nothing was taken")
  end
  for _, one in ipairs(refused) do
    local message = "the shared state has no room for the piece"
    failures[#failures + 1] = { kind = one.kind, key = one.key, code = "PROXY_STATE_FULL", message = message }
  end
  follower.catch_up()
  local late = await_workers(seq)
  add_worker_failures(seq, failures)
  return answer.json(
    ngx.HTTP_OK,
    string.format('{%s,"late":%s,"failures":%s}', summary(seq), answer.array(late), answer.array(failures))
  )
end

--- For whoever changes the state another way.
state.validate, state.write, state.await_workers, state.add_worker_failures = validate, write, await_workers, add_worker_failures

return state
