--- The journal: the last good state on disk, for an NGINX that starts while its controller is away. The controller writes
-- it (controller/proxies/nginx/journal.ts), posted backends among it; here it is only read.
--
-- "NJKS", u32 1, then records. The last one of a piece counts. A torn or corrupt record ends it: what follows can't be told
-- from garbage.
local ngx = ngx or njt
local record = require "balancer.state.record"
local store = require "balancer.state.store"

local journal = {}

local HEADER = "NJKS\1\0\0\0"
--- Bytes that a record may have; more is damage.
local LARGEST = 64 * 1024 * 1024

--- Reads a file, record by record. Never throws.
-- @return an iterator over records, and a function that says, afterwards, why it ended before the end of the file (nil: it did not)
local function records_of(file)
  local why
  local function next_record()
    local head = file:read(4)
    if not head then return nil end
    local length = #head == 4 and record.length(head, 1) or 0
    local rest = length > 0 and length <= LARGEST and file:read(length) or ""
    local read
    read, why = record.read(head .. rest, 1)
    if read then why = nil end
    return read
  end
  return next_record, function() return why end
end

--- Reads the journal into a store that is new; does nothing where the store holds a state already, since that is newer.
-- To be called in `init_by_lua`. A file that is not there is an empty state.
function journal.restore(path)
  if not store.is_new() then return end
  local file = path and io.open(path, "rb")
  if not file then
    store.fill(function() return nil end)
    return
  end
  if file:read(#HEADER) ~= HEADER then
    file:close()
    ngx.log(ngx.ERR, "the journal is none of this version; starting without a state")
    store.fill(function() return nil end)
    return
  end
  local records, ended_early = records_of(file)
  local refused = store.fill(records)
  file:close()
  local why = ended_early()
  if why then ngx.log(ngx.ERR, "the journal ends before its end: ", why) end
  if refused > 0 then ngx.log(ngx.ERR, "the shared state has no room for ", refused, " pieces of the journal") end
  collectgarbage()
end

return journal
