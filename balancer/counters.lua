--- `GET /counters`: what all workers have counted. Counting itself takes no lock: each worker counts in its own memory, and hands
-- its numbers in when it is asked to, by a number in the shared dict `njet_kic_counters` that its timer looks at.
--
--   asked       raised by each `GET /counters`
--   a:<worker>  for which of them that worker has handed its numbers in last
--   w:<worker>  its numbers, as JSON
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local cjson = require "cjson.safe"
local answer = require "balancer.control.answer"
local count = require "balancer.count"
local queue = require "balancer.queue"
local workers = require "balancer.state.workers"

local counters = {}

--- Seconds between looks at the dict, and how long workers are waited for.
local INTERVAL, PATIENCE = 0.05, 2
--- Seconds for which the last numbers of a worker that has ended are shown.
local AFTERWARDS = 60
local dict = ngx.shared.njet_kic_counters
local answered = 0

--- `last`: the worker is ending.
local function hand_in(number, last)
  local all = count.all(ngx.now())
  all.pid = ngx.worker.pid()
  all.queues = queue.status()
  local text = cjson.encode(all)
  local me = workers.me()
  local ok, why = dict:safe_set("w:" .. me, text, last and AFTERWARDS or 0)
  if not ok then ngx.log(ngx.ERR, "counters can't be handed in: ", why) end
  answered = number
  dict:set("a:" .. me, number, last and AFTERWARDS or 0)
end

local function tick(premature)
  local number = dict:get("asked") or 0
  if premature or number ~= answered then hand_in(number, premature) end
end

--- Starts the timer of a worker.
function counters.start()
  if not dict or not ngx.worker.id() then return end
  answered = dict:get("asked") or 0
  ngx.timer.every(INTERVAL, tick)
end

--- The numbers of all workers, and of those that have ended lately, as JSON texts.
local function handed_in()
  local there = {}
  for _, key in ipairs(workers.list(true)) do there[key] = true end
  local all = {}
  for _, name in ipairs(dict:get_keys(0)) do
    local key = string.match(name, "^w:(.*)$")
    -- Who died before it could end has set no limit. What was left out once must not come again: it would count twice.
    if key and not there[key] and dict:ttl(name) == 0 and not workers.is_alive(key) then
      dict:delete(name)
      dict:delete("a:" .. key)
    elseif key then
      all[#all + 1] = dict:get(name)
    end
  end
  return all
end

--- Answers {connections: {active, reading, writing, waiting}, workers: [...]}; a worker that is late shows its last numbers.
function counters.get()
  local number = dict:incr("asked", 1, 0)
  hand_in(number)
  local deadline = ngx.now() + PATIENCE
  for _, key in ipairs(workers.list(true)) do
    while dict:get("a:" .. key) ~= number and workers.said(key) and ngx.now() < deadline do ngx.sleep(INTERVAL / 5) end
  end
  local all = handed_in()
  local var = ngx.var
  local connections = cjson.encode {
    active = tonumber(var.connections_active),
    reading = tonumber(var.connections_reading),
    writing = tonumber(var.connections_writing),
    waiting = tonumber(var.connections_waiting),
  }
  return answer.json(ngx.HTTP_OK, '{"connections":' .. connections .. ',"workers":[' .. table.concat(all, ",") .. "]}")
end

return counters
