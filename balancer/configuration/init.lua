--- The dynamic upstream API: the endpoint that scripts for the balancers of OpenNJet KIC and ingress-nginx know, as a part of the
-- control endpoint.
local ngx = ngx or njt
local answer = require "balancer.configuration.answer"
local answers = require "balancer.control.answer"
local backends = require "balancer.configuration.backends_endpoint"
local kept = require "balancer.configuration.kept"
local record = require "balancer.state.record"
local servers = require "balancer.configuration.servers_endpoint"
local store = require "balancer.state.store"

local configuration = {}

local GENERAL = "general"
local MOST_GENERAL = 65536

--- `POST /configuration/general`: an object that is kept as it is. Nothing here depends on it.
local function post_general()
  local _, text = answer.json_body("{")
  if #text > MOST_GENERAL then return answer.invalid("the object is longer than " .. MOST_GENERAL .. " bytes") end
  return answer.take(
    function() return { answer.record(record.SETTING, GENERAL, text) } end,
    function(changes) return answer.counts(record.SETTING, changes) end
  )
end

local function get_general()
  local _, text = store.piece(record.name(record.SETTING, GENERAL))
  return answers.json(ngx.HTTP_OK, text or "{}")
end

--- Adds the paths to the control endpoint (balancer.control).
function configuration.open(control)
  control.on("/configuration/backends", { GET = backends.get, POST = backends.post, open_reads = true })
  control.on("/configuration/servers", { POST = servers.post })
  control.on("/configuration/certs", { GET = servers.certs, open_reads = true })
  control.on("/configuration/general", { GET = get_general, POST = post_general, open_reads = true })
  control.on("/configuration/kept", { GET = kept.get, POST = kept.post })
  control.on("/is-dynamic-lb-initialized", { GET = backends.is_initialized, open_reads = true })
end

return configuration
