-- The worker's side of the table `native`: decides the requests of a workload over and over, and tells what one costs.
--
-- A body is a list of texts, each a length of 4 little-endian bytes and bytes. /load: path of the library, number of shards,
-- shards, peer sets. /requests: host and target by turns. /measure?case=NAME&rounds=N: nanoseconds of processor time for each
-- operation, and a number that depends on every decision.

local native = require "balancer.core.native"
local Context = require "balancer.core.context"
local RoutingTable = require "balancer.core.routing_table"

local ACTION = Context.FIELDS.ACTION
local ROUTE = Context.FIELDS.ROUTE
local PROXY = 1

local _M = {}

local table_of_routes
local hosts, targets = {}, {}
local decision = RoutingTable.new_decision()
local request = {}

local function texts()
  ngx.req.read_body()
  local body = ngx.req.get_body_data()
  if not body then
    local file = assert(io.open(ngx.req.get_body_file(), "rb"))
    body = file:read("*a")
    file:close()
  end
  local list, at = {}, 1
  while at <= #body do
    local a, b, c, d = body:byte(at, at + 3)
    local length = a + b * 256 + c * 65536 + d * 16777216
    list[#list + 1] = body:sub(at + 4, at + 3 + length)
    at = at + 4 + length
  end
  return list
end

function _M.load()
  local list = texts()
  table_of_routes = assert(RoutingTable.new(assert(native.load(list[1]))))
  local shards = tonumber(list[2])
  for i = 3, #list do
    local load = i < 3 + shards and table_of_routes.load_shard or table_of_routes.load_peers
    assert(load(table_of_routes, list[i]))
  end
  ngx.say("ok")
end

function _M.requests()
  local list = texts()
  for i = 1, #list, 2 do
    hosts[#hosts + 1], targets[#targets + 1] = list[i], list[i + 1]
  end
  ngx.say(#hosts)
end

local CASES = {}

-- A guarded call that does nothing.
function CASES.call()
  local functions, instance, sum = table_of_routes.functions, table_of_routes.memory.instance, 0
  for _ = 1, #hosts do
    sum = sum + functions.njk_abi_version(instance)
  end
  return sum
end

-- Host and target copied in, the core's decision, and the two words that tell which route it was.
function CASES.route()
  local context, sum = table_of_routes.context, 0
  for i = 1, #hosts do
    context:route(hosts[i], #hosts[i], targets[i], #targets[i], false, 0, 0)
    if context:word(ACTION) == PROXY then
      sum = sum + context:word(ROUTE) + 1
    end
  end
  return sum
end

-- As route, with everything read out that a worker needs: peer, upstream, target, origin.
function CASES.decide()
  local sum = 0
  for i = 1, #hosts do
    local decided = table_of_routes:decide(hosts[i], targets[i], false, 0, 0, request, decision)
    if decided.action == "proxy" then
      sum = sum + #decided.target
    end
  end
  return sum
end

function _M.measure()
  local args = ngx.req.get_uri_args()
  local run = CASES[args.case]
  if args.jit == "off" then
    jit.off()
    jit.flush()
  else
    jit.on()
  end
  local rounds, sum = tonumber(args.rounds), 0
  local start = os.clock()
  for _ = 1, rounds do
    sum = run()
  end
  ngx.say((os.clock() - start) * 1e9 / (rounds * #hosts), " ", sum)
end

return _M
