--- `GET /counters`: what all workers have counted. Counting itself takes no lock: each worker counts in its own memory, and hands
-- its numbers in when it is asked to, by a number in the shared dict `njet_kic_counters` that its timer looks at.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local cjson = require "cjson.safe"
local answer = require "balancer.control.answer"
local count = require "balancer.count"
local queue = require "balancer.queue"

local counters = {}

--- Seconds between looks at the dict, and how long workers are waited for.
local INTERVAL, PATIENCE = 0.05, 2
local dict = ngx.shared.njet_kic_counters
local answered = 0

local function hand_in(number)
  local all = count.all(ngx.now())
  all.pid = ngx.worker.pid()
  all.queues = queue.status()
  local text = cjson.encode(all)
  local ok, why = dict:safe_set("w:" .. ngx.worker.id(), text)
  if not ok then ngx.log(ngx.ERR, "counters can't be handed in: ", why) end
  answered = number
  dict:set("a:" .. ngx.worker.id(), number)
end

local function tick(premature)
  local number = dict:get("asked") or 0
  if premature or number ~= answered then hand_in(number) end
end

--- Starts the timer of a worker.
function counters.start()
  if not dict or not ngx.worker.id() then return end
  answered = dict:get("asked") or 0
  ngx.timer.every(INTERVAL, tick)
end

--- Answers {connections: {active, reading, writing, waiting}, workers: [...]}; a worker that is late shows its last numbers.
function counters.get()
  local number = dict:incr("asked", 1, 0)
  hand_in(number)
  local deadline = ngx.now() + PATIENCE
  for id = 0, ngx.worker.count() - 1 do
    while dict:get("a:" .. id) ~= number and ngx.now() < deadline do ngx.sleep(INTERVAL / 5) end
  end
  local workers = {}
  for id = 0, ngx.worker.count() - 1 do workers[#workers + 1] = dict:get("w:" .. id) end
  local var = ngx.var
  local connections = cjson.encode {
    active = tonumber(var.connections_active),
    reading = tonumber(var.connections_reading),
    writing = tonumber(var.connections_writing),
    waiting = tonumber(var.connections_waiting),
  }
  return answer.json(ngx.HTTP_OK, '{"connections":' .. connections .. ',"workers":[' .. table.concat(workers, ",") .. "]}")
end

return counters
