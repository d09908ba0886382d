--- The balancer inside NGINX or OpenNJet: what nginx.conf calls, one function for each phase. Everything behind it is in modules
-- of this folder; who decides is the core (balancer.core).
local jit_options = require "jit.opt"
local control = require "balancer.control"
local native = require "balancer.core.native"
local journal = require "balancer.state.journal"
local store = require "balancer.state.store"

local balancer = {}

local settings

--- In `init_by_lua`. Everything is loaded here, by the master: workers may be somebody who can't read the files. Throws where
-- the native core can't be loaded. Options:
--   library     path of the native core
--   token       file with the token of the control endpoint
--   journal     file with the last good state; may be missing
--   body_limit  bytes of a request body where an upstream sets none; 0: any number
--   logs        true: the access log is told what decided
--   maps        true: OpenNJet has a map of certificates, see balancer.certificate_map
function balancer.init(options)
  -- A phase is one trace, which is longer than LuaJIT's default allows.
  jit_options.start("maxtrace=8000", "maxrecord=32000", "maxirconst=8000", "maxside=400", "maxsnap=2000", "maxmcode=16384")
  settings = options
  local loaded, why = native.load(options.library)
  if not loaded then error("the native core can't be loaded: " .. why, 0) end
  control.open(options.token)
  store.open(loaded)
  journal.restore(options.journal)
  require("balancer.request_headers").open(loaded)
  require "balancer.worker"
  require "balancer.pieces"
  local route = require "balancer.route"
  route.body_limit = options.body_limit or 0
  route.logs = options.logs == true
  local counters = require "balancer.counters"
  require("balancer.configuration").open(control)
  control.on("/counters", { GET = counters.get })
  local own = require("balancer.answers").own
  local requests = require "balancer.requests"
  balancer.route = route.run
  balancer.read_body = route.read_body
  balancer.balance = require("balancer.balance").run
  local respond = require "balancer.respond"
  balancer.respond = respond.run
  balancer.replace = respond.replace
  balancer.log = require("balancer.log").run
  if options.maps then require("balancer.client_hello").open(balancer) end
  balancer.certificate = require("balancer.certificates").choose
  balancer.control = control.handle
  --- The page for a status that NGINX gave by itself.
  function balancer.page()
    local record = requests.current()
    if not record then return own() end
    return own(record.failure, record.pages)
  end
end

--- In `init_worker_by_lua`. OpenNJet calls it in its privileged agent as well, which serves no requests.
function balancer.init_worker()
  require("balancer.worker").open(settings.library)
  require("balancer.pieces").register()
  require("balancer.state.follower").start()
  require("balancer.counters").start()
end

return balancer
