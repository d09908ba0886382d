--- Certificates that were posted. Pieces of kind 7: a host, content the name (uid) of its certificate; of kind 8: a certificate
-- by its name, content as that of a certificate of the controller. Those of the controller come first for the same name.
local cjson = require "cjson.safe"
local ffi = require "ffi"
local ssl = require "ngx.ssl"
local certificates = require "balancer.certificates"

ffi.cdef [[
void *OPENSSL_sk_value(const void *stack, int index);
int X509_check_private_key(const void *certificate, const void *key);
void ERR_clear_error(void);
]]

local servers = { hosts = {}, certificates = {} }

local REFUSED = "the certificate or its key can't be used"
--- What ingress-nginx calls the server of all other names.
local OTHERS = "_"

--- By host, name of the certificate; by name, what handshakes need.
local names, pairs_by_name = {}, {}

local function blocks(pem, label)
  local found = {}
  for block in pem:gmatch("%-%-%-%-%-BEGIN " .. label .. "%-%-%-%-%-[%w+/=%s]*%-%-%-%-%-END " .. label .. "%-%-%-%-%-") do
    found[#found + 1] = block .. "\n"
  end
  return found
end

--- Splits PEM with chain and key, in any order, into the content of a piece; nil where either is missing or they don't fit.
function servers.content(pem)
  local chain = table.concat(blocks(pem, "CERTIFICATE"))
  local keys = blocks(pem, "[%u ]*PRIVATE KEY")
  if chain == "" or #keys ~= 1 then return nil end
  local content = '{"chain":' .. cjson.encode(chain) .. ',"key":' .. cjson.encode(keys[1]) .. "}"
  return servers.certificates.validate("", content) and content or nil
end

--- The chain of a content, without the key.
function servers.chain(content)
  local json = cjson.decode(content)
  return json and json.chain
end

--- Key and chain as OpenSSL has them; nil where they can't be used together.
local function parse(content)
  local pair = certificates.parse(content)
  if not pair then return nil end
  local fits = ffi.C.X509_check_private_key(ffi.C.OPENSSL_sk_value(pair[1], 0), pair[2]) == 1
  -- What is left in the queue would be taken for an error of the next connection.
  ffi.C.ERR_clear_error()
  return fits and pair or nil
end

function servers.certificates.validate(_, content)
  -- Nothing of what is thrown may get into a log: it may hold a part of the key.
  local fine, pair = pcall(parse, content)
  if fine and pair then return true end
  return false, "CONFIGURATION_INVALID", REFUSED
end

function servers.certificates.load(name, content)
  local fine, pair = pcall(parse, content)
  if not fine or not pair then return false, "CONFIGURATION_INVALID", REFUSED end
  pairs_by_name[name] = pair
  return true
end

function servers.certificates.drop(name)
  pairs_by_name[name] = nil
end

function servers.hosts.load(host, content)
  names[host] = content
  return true
end

function servers.hosts.drop(host)
  names[host] = nil
end

--- Name of the certificate of a host; nil for none.
function servers.name_of(host)
  return names[host]
end

--- Numbers of hosts by name of their certificate, in a new table.
function servers.uses()
  local uses = {}
  for _, name in pairs(names) do uses[name] = (uses[name] or 0) + 1 end
  return uses
end

function certificates.posted(host)
  return pairs_by_name[names[host == "" and OTHERS or host]]
end

return servers
