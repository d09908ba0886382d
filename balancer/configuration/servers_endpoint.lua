--- `/configuration/servers` and `/configuration/certs`.
local ngx = ngx or njt
local cjson = require "cjson.safe"
local answer = require "balancer.configuration.answer"
local answers = require "balancer.control.answer"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local schema = require "balancer.configuration.schema"
local servers = require "balancer.configuration.servers"
local store = require "balancer.state.store"

local endpoint = {}

--- The certificate of a host that has none.
local NONE = "-1"
local LONGEST_HOST = 255
local NOT_FOUND = 404

local function check_host(name)
  if #name <= LONGEST_HOST and (name == "_" or name:find("^[%w.-]+$") or name:find("^%*%.[%w.-]+$")) then return true end
  return false, "must be a host, *.domain or _"
end

local function check_name(name)
  if #name <= LONGEST_HOST and name:find("^[%w._-]+$") then return true end
  return false, "must be letters, digits and ._-"
end

--- PEM has line ends, so it is no text of the schema.
local pem = {
  read = function(value, path)
    local content = type(value) == "string" and servers.content(value)
    if content then return content end
    return nil, path .. ": must be PEM with a certificate and the one key that fits it"
  end,
}

local reader = schema.object {
  { "servers", schema.map(schema.text(LONGEST_HOST, check_name), check_host) },
  { "certificates", schema.map(pem, check_name) },
}

local function stored(name)
  return (store.piece(record.name(record.NAMED_CERTIFICATE, name))) ~= nil
end

--- `POST`: what is to change. Hosts and certificates that are not in it stay; a certificate goes with the last host that has it.
function endpoint.post()
  local posted, why = reader.read(answer.json_body("{"), "")
  if not posted then return answer.invalid(why) end
  local hosts, certificates = {}, posted.certificates or {}
  for host, name in pairs(posted.servers or {}) do
    hosts[host:lower()] = name
  end
  local function records()
    local changes = {}
    local function add(one) changes[#changes + 1] = one end
    local uses, left = servers.uses(), {}
    for host, name in pairs(hosts) do
      if name ~= NONE and not certificates[name] and not stored(name) then
        return nil, "servers[" .. cjson.encode(host) .. "]: there is no certificate of this name"
      end
      local before = servers.name_of(host)
      if before then
        uses[before] = uses[before] - 1
        left[before] = true
      end
      if name ~= NONE then uses[name] = (uses[name] or 0) + 1 end
    end
    for name, content in pairs(certificates) do add(answer.record(record.NAMED_CERTIFICATE, name, content)) end
    for host, name in pairs(hosts) do add(answer.record(record.SERVER, host, name ~= NONE and name or nil)) end
    for name in pairs(left) do
      if uses[name] == 0 and not certificates[name] then add(answer.record(record.NAMED_CERTIFICATE, name, nil)) end
    end
    return changes
  end
  return answer.take(records, function(changes) return answer.counts(record.SERVER, changes) end)
end

--- `GET /configuration/certs?hostname=`: the chain of a host, as PEM; never the key.
function endpoint.certs()
  local host = ngx.req.get_uri_args(16).hostname
  if type(host) ~= "string" or host == "" then
    return answers.refuse(400, "CONFIGURATION_INVALID", "the argument hostname is needed")
  end
  follower.catch_up()
  local name = servers.name_of(host:lower())
  local _, content = store.piece(record.name(record.NAMED_CERTIFICATE, name or ""))
  if not content then return answers.refuse(NOT_FOUND, "CONFIGURATION_NONE", "no certificate was posted for this host") end
  ngx.header["Content-Type"] = "application/x-pem-file"
  ngx.header["Cache-Control"] = "no-store"
  ngx.print(servers.chain(content))
  return ngx.exit(ngx.HTTP_OK)
end

return endpoint
