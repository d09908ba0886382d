--- Certificates by server name, each parsed once when it comes. A renewal acts on the next handshake.
local ngx = ngx or njt
local ssl = require "ngx.ssl"
local cjson = require "cjson.safe"
local follower = require "balancer.state.follower"
local usable_pair = require "balancer.usable_pair"

local find, lower, sub = string.find, string.lower, string.sub

local certificates = {}

--- The key of the one for handshakes that no other fits.
local DEFAULT = ""

--- By host: {chain, key} as OpenSSL has them, freed by the garbage collector.
local pairs_of_hosts = {}

--- {chain, key} as OpenSSL has them, of the content of a piece; nil where they can't be read, and why where they can't be used.
local function parse(content)
  local json = cjson.decode(content)
  if type(json) ~= "table" or type(json.chain) ~= "string" or type(json.key) ~= "string" then return nil end
  -- What OpenSSL says may quote what it was given.
  local chain = ssl.parse_pem_cert(json.chain)
  local key = chain and ssl.parse_pem_priv_key(json.key)
  if not key then return nil end
  local why = usable_pair.why_not(chain, key)
  if why then return nil, why end
  return { chain, key }
end

certificates.parse = parse

--- The pair for a host that came another way; another module may put its own in place. "": for all other names.
function certificates.posted() end

local function refusal(why)
  local message = "the certificate or its key can't be used"
  return false, "PROXY_CERTIFICATE_INVALID", why and message .. ": " .. why or message
end

function certificates.validate(_, content)
  local pair, why = parse(content)
  if pair then return true end
  return refusal(why)
end

function certificates.load(host, content)
  local pair, why = parse(content)
  if not pair then return refusal(why) end
  pairs_of_hosts[host] = pair
  return true
end

function certificates.drop(host)
  pairs_of_hosts[host] = nil
end

--- The pair for a server name: of the exact host, of the wildcard for one label, the default one; nil for NGINX's own.
local function pair_for(name)
  if name then
    name = lower(name)
    local exact = pairs_of_hosts[name] or certificates.posted(name)
    if exact then return exact end
    local dot = find(name, ".", 1, true)
    local pattern = dot and "*" .. sub(name, dot)
    local wildcard = pattern and (pairs_of_hosts[pattern] or certificates.posted(pattern))
    if wildcard then return wildcard end
  end
  return pairs_of_hosts[DEFAULT] or certificates.posted(DEFAULT)
end

--- Has the connection at hand use a pair; what is wrong, if it can't.
local function use(pair)
  local ok, why = ssl.set_cert(pair[1])
  if ok then ok, why = ssl.set_priv_key(pair[2]) end
  if not ok then return tostring(why) end
end

local function refuse(why)
  ngx.log(ngx.ERR, "a certificate can't be used: ", why)
  return ngx.exit(ngx.ERROR)
end

--- Answers a handshake; in `ssl_certificate_by_lua`.
function certificates.choose()
  follower.catch_up()
  local pair = pair_for(ssl.server_name())
  if not pair then return end
  ssl.clear_certs()
  local why = use(pair)
  if why then return refuse(why) end
end

certificates.pair_for, certificates.use, certificates.refuse = pair_for, use, refuse

return certificates
