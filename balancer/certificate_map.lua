--- OpenNJet's dynamic map from server names to files of certificates, and whether this worker relies on it.
--
-- The piece "certificates" of this kind names the version of the map that the controller has sent. What is sent reaches each worker
-- by itself, some time later or never. So a worker relies on the map only once it has seen that version with its own eyes, in a
-- variable that has no other value; until then, and whenever the piece is not there, it answers handshakes by its own certificates.
local ngx = ngx or njt
local var = ngx.var

local certificate_map = {}

local wanted
local seen = false

function certificate_map.load(_, content)
  wanted, seen = content, false
  return true
end

function certificate_map.drop()
  wanted, seen = nil, false
end

--- Looks which version of the map this worker has; where variables can be read. Cheap where nothing is waited for.
function certificate_map.look()
  if wanted and not seen then seen = var.njet_certificate_map == wanted end
end

--- True if handshakes are the map's.
function certificate_map.is_in_force()
  return seen
end

return certificate_map
