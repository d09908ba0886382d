--- A handler of pieces for tests: keeps what it is given, refuses contents that say so, and shows all of it.
local ngx = ngx
local cjson = require "cjson.safe"
local follower = require "balancer.state.follower"

local held = {}
local recorder = {}

local function handler(kind)
  return {
    validate = function(_, content)
      if content:find("throw", 1, true) then error("thrown: " .. content) end
      if content:find("refuse", 1, true) then return false, "CORE_IMAGE_CORRUPT", "told to refuse" end
      return true
    end,
    load = function(key, content)
      if content:find("unloadable", 1, true) then return false, "CORE_MEMORY", "told not to load" end
      held[kind .. ":" .. key] = ngx.md5(content)
      return true
    end,
    drop = function(key) held[kind .. ":" .. key] = nil end,
  }
end

for _, kind in ipairs { 1, 2, 3, 4, 10 } do follower.on(kind, handler(kind)) end

--- What this worker has, as it would be for a request: nothing, where it has not caught up.
function recorder.show()
  follower.catch_up()
  ngx.header["Content-Type"] = "application/json"
  ngx.say(cjson.encode({ pid = ngx.worker.pid(), held = next(held) and held or nil }))
end

--- The same without looking at the shared state.
function recorder.peek()
  ngx.say(cjson.encode({ pid = ngx.worker.pid(), held = next(held) and held or nil }))
end

--- Does what a writer does before it dies in the middle of a batch: one piece is written, and the batch is not.
function recorder.die_half_way()
  local dict = ngx.shared.njet_kic_state
  dict:set("log:" .. dict:get("seq") + 1, "1:half")
  dict:set("p1:half", "DIGESTED" .. "half a batch")
  ngx.say("done")
end

return recorder
