--- `/configuration/backends` and `/is-dynamic-lb-initialized`.
local ngx = ngx or njt
local answer = require "balancer.configuration.answer"
local answers = require "balancer.control.answer"
local backend = require "balancer.configuration.backend"
local backends = require "balancer.configuration.backends"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local store = require "balancer.state.store"

local endpoint = {}

--- Of the pieces with settings, the one that is there from the first array on.
local INITIALIZED = "initialized"

--- Contents by name, and names in order. Does not come back where anything is wrong.
local function read(list)
  local contents, names = {}, {}
  for i, value in ipairs(list) do
    answer.take_turns(i)
    local path = "[" .. i - 1 .. "]"
    local read_one, why = backend.read(value, path)
    if not read_one then return answer.invalid(why) end
    local name = read_one.name
    if contents[name] then return answer.invalid(path .. '.name: "' .. name .. '" is there twice') end
    local content = backend.write(read_one)
    -- What is in force was checked when it came.
    if answer.record(record.BACKEND, name, content) then
      local ok, _, message = follower.validate(record.BACKEND, name, content)
      if not ok then return answer.invalid(path .. ": " .. message) end
    end
    contents[name], names[i] = content, name
  end
  return contents, names
end

--- `POST`: the array of all backends. Those that are not in it go, and only those that differ are shipped.
function endpoint.post()
  local list = answer.json_body("[")
  for key in pairs(list) do
    if type(key) ~= "number" or key > #list then return answer.invalid("the array has holes") end
  end
  local contents, names = read(list)
  local function records()
    local changes = {}
    local compared = 0
    local function add(name, content)
      changes[#changes + 1] = answer.record(record.BACKEND, name, content)
      compared = compared + 1
      answer.take_turns(compared)
    end
    -- What goes makes room for what comes.
    for _, name in ipairs(backends.names()) do
      if not contents[name] then add(name, nil) end
    end
    for _, name in ipairs(names) do add(name, contents[name]) end
    changes[#changes + 1] = answer.record(record.SETTING, INITIALIZED, "true")
    return changes
  end
  return answer.take_in_slices("backends", records, function(changes) return answer.counts(record.BACKEND, changes) end)
end

--- `GET`: the backends that are in force, in the order of their names.
function endpoint.get()
  follower.catch_up()
  local contents = {}
  for _, name in ipairs(backends.names()) do
    local _, content = store.piece(record.name(record.BACKEND, name))
    contents[#contents + 1] = content
  end
  return answers.json(ngx.HTTP_OK, "[" .. table.concat(contents, ",") .. "]")
end

--- 200 once an array of backends was taken, also before a restart that they have outlived; 500 before.
function endpoint.is_initialized()
  if store.piece(record.name(record.SETTING, INITIALIZED)) then return answers.json(ngx.HTTP_OK, '"OK"') end
  return answers.refuse(500, "CONFIGURATION_NONE", "no backends have been posted, or none that were kept")
end

return endpoint
