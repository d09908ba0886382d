--- What is counted, in each worker by itself: requests by host pattern, attempts and requests by peer. Plain numbers; the same as
-- controller/proxies/embedded/traffic.ts has. A host is counted by the pattern that its rules stand under, never by what a
-- client writes, and what is counted for a host or peer goes when its object does.
local bit = require "bit"
local ffi = require "ffi"

local band = bit.band

local count = {}

--- Where a request counts that no host of ours has decided.
local NO_HOST = "_"
local BUCKETS = 9
--- How many of the last durations count for their average (a power of two), and for how long, in seconds.
local KEPT, PERIOD = 64, 60
--- Classes of statuses: 1xx to 5xx.
local MOST_CODES = 5
local LAST_TAKEN = 2 ^ 31 - 1

--- Plain memory: LuaJIT adds to it without asking what it is, and the collector of garbage has nothing to look at. All of it
-- is zero at first. `codes[1]` are answers of 1xx, `buckets[1]` the shortest durations; `taken` counts what was ever put into
-- the rings of the last ones.
ffi.cdef(([[
  typedef struct {
    double seconds;
    double buckets[%d];
    int32_t taken;
    double durations[%d], at[%d];
  } njk_times;
  typedef struct {
    double received, sent;
    double codes[%d];
    njk_times requests;
  } njk_counts;
  typedef struct {
    njk_counts counts;
    njk_times responses;
  } njk_peer_counts;
]]):format(BUCKETS + 1, KEPT, KEPT, MOST_CODES + 1))
local new_counts, new_peer = ffi.typeof "njk_counts", ffi.typeof "njk_peer_counts"

--- By host as decisions name it.
local hosts = { [NO_HOST] = new_counts() }
--- By host, the patterns (`*.x`, `**.x`) that stand for it.
local patterns = {}
--- By upstream key, then by `ip:port`.
local peers = {}
--- Sums of hosts that are gone: totals never go down.
local gone = new_counts()
local total = 0

--- The bucket of a duration. Written out: LuaJIT takes no loop into the trace of a phase.
local function bucket_of(seconds)
  if seconds <= 0.05 then return seconds <= 0.005 and 1 or seconds <= 0.01 and 2 or 3 end
  if seconds <= 1 then return seconds <= 0.1 and 4 or seconds <= 0.5 and 5 or 6 end
  return seconds <= 5 and 7 or seconds <= 10 and 8 or BUCKETS
end

local function observe(times, seconds, now)
  local i = bucket_of(seconds)
  times.buckets[i] = times.buckets[i] + 1
  times.seconds = times.seconds + seconds
  local taken = times.taken
  local place = band(taken, KEPT - 1)
  times.durations[place], times.at[place] = seconds, now
  -- Goes round below the end of its type, with all places taken.
  times.taken = taken < LAST_TAKEN and taken + 1 or KEPT
end

--- The class of a status, 0 for one that is none: `codes` has a place for them as well, which nobody reads.
function count.class_of(status)
  local digit = (status - status % 100) / 100
  return digit >= 1 and digit <= MOST_CODES and digit or 0
end

--- Adds a request or attempt by its class of status.
local function add(counts, class, received, sent, seconds, now)
  counts.received = counts.received + received
  counts.sent = counts.sent + sent
  counts.codes[class] = counts.codes[class] + 1
  observe(counts.requests, seconds, now)
end

local function add_times(to, from)
  for i = 1, BUCKETS do to.buckets[i] = to.buckets[i] + from.buckets[i] end
  to.seconds = to.seconds + from.seconds
end

local function host_of(pattern)
  if pattern == "" or pattern == "(default)" then return NO_HOST end
  return pattern:sub(1, 3) == "**." and pattern:sub(2) or pattern
end

function count.add_host(pattern)
  local host = host_of(pattern)
  patterns[host] = patterns[host] or {}
  patterns[host][pattern] = true
end

function count.remove_host(pattern)
  local host = host_of(pattern)
  local of = patterns[host]
  if not of then return end
  of[pattern] = nil
  if next(of) then return end
  patterns[host] = nil
  local counts = hosts[host]
  if not counts or host == NO_HOST then return end
  gone.received, gone.sent = gone.received + counts.received, gone.sent + counts.sent
  for i = 1, MOST_CODES do gone.codes[i] = gone.codes[i] + counts.codes[i] end
  add_times(gone.requests, counts.requests)
  hosts[host] = nil
end

--- An upstream is another one now: peers that have left are forgotten.
function count.keep_peers(key, core)
  local of = peers[key]
  if not of then return end
  local kept = {}
  for _, one in ipairs(core:peers_of(key)) do kept[one.peer.id] = of[one.peer.id] end
  peers[key] = kept
end

function count.forget_upstream(key)
  peers[key] = nil
end

--- A request has ended. `host`: as its decision names it, nil where none has decided. `class`: see class_of. Times in seconds, sizes in
-- bytes.
function count.request(host, class, received, sent, seconds, now)
  total = total + 1
  local counts = hosts[host or NO_HOST]
  if not counts then
    if host == "" then
      counts = hosts[NO_HOST]
    elseif patterns[host] then
      counts = new_counts()
      hosts[host] = counts
    else
      -- Its rules have gone while the request was under way.
      counts = gone
    end
  end
  add(counts, class, received, sent, seconds, now)
end

--- Counts of a peer, made by its first request.
function count.peer(key, id)
  local of = peers[key]
  if not of then
    of = {}
    peers[key] = of
  end
  local counts = of[id]
  if not counts then
    counts = new_peer()
    of[id] = counts
  end
  return counts
end

--- An attempt that was not the last one.
function count.attempt(counts, class, seconds, now)
  local codes = counts.counts.codes
  codes[class] = codes[class] + 1
  observe(counts.responses, seconds, now)
end

--- The last attempt of a request, for which the request counts.
function count.last_attempt(counts, class, received, sent, seconds, response, now)
  add(counts.counts, class, received, sent, seconds, now)
  observe(counts.responses, response, now)
end

--- Buckets (of each alone), sum, and what is needed for the average of the last minute.
local function times_of(times, now)
  local buckets, recent, number = {}, 0, 0
  for i = 1, BUCKETS do buckets[i] = times.buckets[i] end
  for i = 0, math.min(times.taken, KEPT) - 1 do
    if now - times.at[i] <= PERIOD then
      recent = recent + times.durations[i]
      number = number + 1
    end
  end
  return { buckets = buckets, seconds = times.seconds, recent = recent, recentCount = number }
end

local function counts_of(counts, now)
  local codes = {}
  for i = 1, MOST_CODES do codes[i] = counts.codes[i] end
  return { received = counts.received, sent = counts.sent, codes = codes, requests = times_of(counts.requests, now) }
end

local function counts_of_peer(counts, now)
  local all = counts_of(counts.counts, now)
  all.responses = times_of(counts.responses, now)
  return all
end

--- Everything that was counted here, for JSON: {requests, gone, hosts: {host: counts}, peers: {upstream: {"ip:port": counts}}},
-- counts being {received, sent, codes (1xx to 5xx), requests, responses (of peers)}, the last two {buckets, seconds, recent,
-- recentCount}.
function count.all(now)
  local of_hosts, of_peers = {}, {}
  for host, counts in pairs(hosts) do of_hosts[host] = counts_of(counts, now) end
  for key, of in pairs(peers) do
    local list = {}
    for id, counts in pairs(of) do list[id] = counts_of_peer(counts, now) end
    if next(list) then of_peers[key] = list end
  end
  return { requests = total, gone = counts_of(gone, now), hosts = of_hosts, peers = of_peers }
end

return count
