--- Whether OpenSSL takes a certificate and its key for handshakes. It parses pairs that it then refuses in each handshake, such as those with
-- keys that are too short for the system's level of security: so it is asked when they come.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ffi = require "ffi"

ffi.cdef [[
const void *TLS_server_method(void);
void *SSL_CTX_new(const void *method);
void SSL_CTX_free(void *context);
int X509_check_private_key(const void *certificate, const void *key);
int SSL_CTX_use_certificate(void *context, void *certificate);
int SSL_CTX_use_PrivateKey(void *context, void *key);
long SSL_CTX_ctrl(void *context, int command, long argument, void *pointer);
int OPENSSL_sk_num(const void *stack);
void *OPENSSL_sk_value(const void *stack, int place);
unsigned long ERR_peek_error(void);
const char *ERR_reason_error_string(unsigned long code);
void ERR_clear_error(void);
]]

local C = ffi.C

local usable_pair = {}

--- SSL_CTRL_CHAIN, which without one takes away the chain of the certificate before (SSL_CTX_clear_chain_certs).
local CHAIN = 88
--- SSL_CTRL_CHAIN_CERT, and that the context is to have the certificate as well as we (SSL_CTX_add1_chain_cert).
local CHAIN_CERT, SHARED = 89, 1

--- What pairs are tried with, one after the other: making one takes longer than everything else, and a worker that starts has all pairs
-- before it.
local context

local function reason()
  local text = C.ERR_reason_error_string(C.ERR_peek_error())
  C.ERR_clear_error()
  return text ~= nil and ffi.string(text) or "refused"
end

local function take(chain, key)
  local leaf = C.OPENSSL_sk_value(chain, 0)
  -- The context has a place for each kind of key: one of another kind than its certificate would be compared with a pair from before.
  if C.X509_check_private_key(leaf, key) ~= 1 then return false end
  if C.SSL_CTX_use_certificate(context, leaf) ~= 1 then return false end
  C.SSL_CTX_ctrl(context, CHAIN, 0, nil)
  for place = 1, C.OPENSSL_sk_num(chain) - 1 do
    if C.SSL_CTX_ctrl(context, CHAIN_CERT, SHARED, C.OPENSSL_sk_value(chain, place)) ~= 1 then return false end
  end
  return C.SSL_CTX_use_PrivateKey(context, key) == 1
end

--- Nil if a handshake can have the pair, as OpenSSL has it; why not, in OpenSSL's words, which quote nothing of it.
function usable_pair.why_not(chain, key)
  C.ERR_clear_error()
  if not context then
    local made = C.SSL_CTX_new(C.TLS_server_method())
    if made == nil then return reason() end
    context = ffi.gc(made, C.SSL_CTX_free)
  end
  return not take(chain, key) and reason() or nil
end

return usable_pair
