--- What workers have in force, as each says by itself: its place in balancer.state.workers holds id, number of the last batch, time,
-- checksum and number of what it has loaded; `e:<worker>` in `njet_kic_state` what it could not load, as JSON, behind the number
-- of the batch.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local store = require "balancer.state.store"
local workers = require "balancer.state.workers"

local format, match = string.format, string.match
local dict = ngx.shared.njet_kic_state

local acknowledgements = {}

--- This worker has all batches up to `seq` in force. Of one length, so that it is written in place.
function acknowledgements.acknowledge(seq, low, high, count)
  workers.say(format("%-10d %-15d %-15.3f %s %-10d", ngx.worker.id(), seq, ngx.now(), store.sum_text(low, high), count))
end

--- What a worker (its key) has acknowledged: `{id, pid, seq, time, sum, count}`; nil if it has never said anything.
local function acknowledged(key)
  local text = workers.said(key)
  local id, seq, time, sum, count = match(text or "", "^(%d+) +(%d+) +([%d.]+) +(%x+) (%d+)")
  if not id then return nil end
  return {
    id = tonumber(id),
    pid = tonumber(match(key, "^%d+")),
    seq = tonumber(seq),
    time = tonumber(time),
    sum = sum,
    count = tonumber(count),
  }
end

--- What all workers that there are have acknowledged, by their ids; those that have never said anything left out.
function acknowledgements.workers()
  local list = {}
  for _, key in ipairs(workers.list(true)) do list[#list + 1] = acknowledged(key) end
  table.sort(list, function(a, b)
    if a.id ~= b.id then return a.id < b.id end
    return a.pid < b.pid
  end)
  return list
end

--- Ids of the workers that have not acknowledged batch `seq`; -1 for one that has not said who it is. Those that died are looked for
-- and left out with `sure`.
function acknowledgements.late_workers(seq, sure)
  local late, known = {}, {}
  for _, key in ipairs(workers.list(sure)) do
    local worker = acknowledged(key)
    if worker then known[worker.id] = true end
    if not worker or worker.seq < seq then late[#late + 1] = worker and worker.id or -1 end
  end
  if not workers.are_starting() then return late end
  for id = 0, ngx.worker.count() - 1 do
    if not known[id] then late[#late + 1] = id end
  end
  return late
end

--- What this worker could not load of batch `seq`: an array of failures as JSON, or nil.
function acknowledgements.set_failures(json, seq)
  local key = "e:" .. workers.me()
  if json then dict:safe_set(key, seq .. " " .. json) else dict:delete(key) end
end

--- What workers could not load of batch `seq`, as JSON: an array of texts.
function acknowledgements.failures(seq)
  local found = {}
  for _, key in ipairs(workers.list()) do
    local of, json = match(dict:get("e:" .. key) or "", "^(%d+) (.*)$")
    if tonumber(of) == seq then found[#found + 1] = json end
  end
  return found
end

return acknowledgements
