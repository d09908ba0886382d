--- For tests of vectors, whose peers have addresses that do not exist here: connections go to servers on loopback that stand for
-- them. What the core chooses is left as it is.
local stand_ins = {}

--- `ports`: by `ip:port` of a peer, the port on 127.0.0.1. To be called before the balancer is loaded.
function stand_ins.open(ports)
  local balancer = require "ngx.balancer"
  local set_current_peer = balancer.set_current_peer
  function balancer.set_current_peer(id)
    return set_current_peer("127.0.0.1", assert(ports[id], "nobody stands for the peer"))
  end
  require("balancer.worker").random = function() return 0 end
end

return stand_ins
