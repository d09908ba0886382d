--- Certificates in OpenNJet, whose TLS listener has them from a map of files: in `ssl_client_hello_by_lua`, before OpenNJet looks into
-- the map, a worker that does not rely on it gives the connection a pair of its own, and takes the look into the map away.
local ngx = ngx or njt
local ffi = require "ffi"
local base = require "resty.core.base"
local hello = require "ngx.ssl.clienthello"
local certificate_map = require "balancer.certificate_map"
local certificates = require "balancer.certificates"
local follower = require "balancer.state.follower"

ffi.cdef [[
void *njt_http_lua_ffi_get_req_ssl_pointer(void *request);
void SSL_set_cert_cb(void *connection, void *callback, void *argument);
]]

local C = ffi.C
local get_request = base.get_request

local client_hello = {}

local function answer()
  follower.catch_up()
  if certificate_map.is_in_force() then return end
  local pair = certificates.pair_for((hello.get_client_hello_server_name()))
  if not pair then return end
  local why = certificates.use(pair)
  if why then return certificates.refuse(why) end
  C.SSL_set_cert_cb(C.njt_http_lua_ffi_get_req_ssl_pointer(get_request()), nil, nil)
end

--- Adds what njet.conf calls.
function client_hello.open(balancer)
  local log = balancer.log
  balancer.client_hello = answer
  function balancer.log()
    certificate_map.look()
    return log()
  end
end

return client_hello
