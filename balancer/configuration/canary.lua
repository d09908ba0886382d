--- Which backend serves a request: the one that is named, or one of its alternatives. Each alternative has a policy of its own.
-- Headers and cookies of all of them count before any weight; the weights are shares of one draw.
local ngx = ngx or njt
local pattern = require "balancer.core.pattern"
local worker = require "balancer.worker"

local canary = {}

--- A weight is out of so many at least.
local LEAST_TOTAL = 100
local TOP = 4294967296
local YES, NO = "always", "never"

local function rule_of(settings)
  local header = settings.header
  if not header or header == "" then return nil end
  local rule = { variable = "http_" .. header:lower():gsub("-", "_") }
  if (settings.headerValue or "") ~= "" then
    rule.value = settings.headerValue
  elseif (settings.headerPattern or "") ~= "" then
    local image, why = pattern.compile(worker.table, settings.headerPattern)
    if not image then return nil, "headerPattern: " .. why end
    rule.image = image
  end
  return rule
end

--- Makes a policy of the schema ready; nil and what is wrong. Nothing where there is none.
function canary.read(settings)
  settings = settings or {}
  local rules = {}
  local list = { settings, unpack(settings.headers or {}) }
  for _, one in ipairs(list) do
    local rule, why = rule_of(one)
    if why then return nil, why end
    rules[#rules + 1] = rule
  end
  return {
    rules = rules,
    cookie = (settings.cookie or "") ~= "" and "cookie_" .. settings.cookie or nil,
    share = (settings.weight or 0) / math.max(LEAST_TOTAL, settings.weightTotal or 0),
  }
end

--- What the request itself asks for: true, false, or nil where it says nothing.
local function asked(policy)
  for _, rule in ipairs(policy.rules) do
    local said = ngx.var[rule.variable]
    if said then
      if rule.value then
        if said == rule.value then return true end
      elseif rule.image then
        if pattern.holds(worker.table, rule.image, said) then return true end
      elseif said == YES then
        return true
      elseif said == NO then
        return false
      end
    end
  end
  local said = policy.cookie and ngx.var[policy.cookie]
  if said == YES then return true end
  if said == NO then return false end
  return nil
end

--- The alternative that serves the request at hand; nil for none of them. `alternatives`: backends with a policy and peers.
function canary.choose(alternatives)
  local open = {}
  for _, one in ipairs(alternatives) do
    local wanted = asked(one.policy)
    if wanted then return one end
    if wanted == nil then open[#open + 1] = one end
  end
  local left = worker.random() / TOP
  for _, one in ipairs(open) do
    left = left - one.policy.share
    if left < 0 then return one end
  end
  return nil
end

return canary
