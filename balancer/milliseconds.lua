--- The clock by which NGINX tells how long a peer took: whole milliseconds that only go forward, the same all through a turn of its loop
-- of events. `ngx.now` has another one beside it, which begins its milliseconds elsewhere.
--
--   milliseconds() -> a number; nil where the program does not give its clock
local ffi = require "ffi"

local C = ffi.C
local tonumber = tonumber

-- Each is one number. As an array its name means an address, which is looked for once.
ffi.cdef [[
  extern volatile intptr_t ngx_current_msec[1];
  extern volatile intptr_t njt_current_msec[1];
]]

local function of_program(symbol)
  local fine, found = pcall(function() return C[symbol] end)
  return fine and found or nil
end

local clock = of_program "ngx_current_msec" or of_program "njt_current_msec"

return function()
  return clock and tonumber(clock[0])
end
