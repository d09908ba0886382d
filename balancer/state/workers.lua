--- Who the workers are: each enters itself in the dict `njet_kic_workers`, and takes itself out when it begins to end.
--
--   <pid>.<start>  what that worker has acknowledged, see balancer.state.acknowledgements; empty before the first time
--   entered        number of workers that have ever entered
--
-- Neither the number of workers nor their ids can tell: OpenNJet starts and ends workers while it runs, a worker keeps the number
-- that it was forked with, and two may have the same id. A process number alone can be another process's by now, so the time at
-- which the process started counts too.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local ffi = require "ffi"

ffi.cdef "int kill(int pid, int signal);"

local dict = ngx.shared.njet_kic_workers

local workers = {}

local ENTERED = "entered"
--- What kill sets errno to where there is no such process.
local NO_SUCH_PROCESS = 3

local own_pid, own_key

--- State and start time (clock ticks after the start of the system) of a process, as text; nil where the system does not show it.
local function look_up(pid)
  local file = io.open("/proc/" .. pid .. "/stat", "r")
  local text = file and file:read("*a")
  if file then file:close() end
  if not text then return nil end
  -- The name of the program, in parentheses, may hold anything; the state is the third field, the start time the 22nd.
  local state, rest = string.match(text, "^.*%) (%a) (.*)$")
  if not state then return nil end
  return state, (string.match(rest, "^" .. string.rep("%S+ ", 18) .. "(%d+)"))
end

--- What names this process among all that there ever are.
function workers.me()
  local pid = ngx.worker.pid()
  if pid ~= own_pid then
    local _, start = look_up(pid)
    own_pid, own_key = pid, pid .. "." .. (start or 0)
  end
  return own_key
end

--- True unless the process of this name has ended.
function workers.is_alive(key)
  local pid, start = string.match(key, "^(%d+)%.(%d+)$")
  if not pid then return false end
  local state, started = look_up(pid)
  if state then return state ~= "Z" and state ~= "X" and (start == "0" or started == start) end
  return ffi.C.kill(tonumber(pid), 0) == 0 or ffi.errno() ~= NO_SUCH_PROCESS
end

--- This worker is there from now on: changes wait for it.
function workers.enter()
  local ok, why = dict:safe_set(workers.me(), "")
  if not ok then ngx.log(ngx.ERR, "no room for another worker in njet_kic_workers: ", why) end
  dict:incr(ENTERED, 1, 0)
end

--- Nobody waits for this worker any more. Nothing where it has left before.
function workers.leave()
  dict:delete(workers.me())
end

--- Sets what this worker says of itself.
function workers.say(text)
  dict:safe_set(workers.me(), text)
end

--- What a worker has said last; empty before the first time, nil for one that is not there.
function workers.said(key)
  return dict:get(key)
end

--- The workers that have entered and not left: an array of keys. With `sure` each of them is looked
-- up, and those that died without leaving are taken out.
function workers.list(sure)
  local keys = {}
  for _, key in ipairs(dict:get_keys(0)) do
    if key ~= ENTERED then
      if not sure or workers.is_alive(key) then keys[#keys + 1] = key else dict:delete(key) end
    end
  end
  return keys
end

--- True until as many workers have entered as the first of them were told that there would be.
function workers.are_starting()
  return (dict:get(ENTERED) or 0) < ngx.worker.count()
end

return workers
