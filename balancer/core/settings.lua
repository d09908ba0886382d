-- The settings of a decision: header changes and error pages, with their values filled in (core-wasm/ABI.md).
--
--   settings.read(context, length) -> list of header changes, and list of error pages or false, as decision.lua tells of them; of so many
--                                     bytes of settings. The last that is read of a decision, since rendering goes on in the output buffer

local bit = require "bit"
local Context = require "balancer.core.context"

local band, rshift = bit.band, bit.rshift
local gmatch, match = string.gmatch, string.match
local F = Context.FIELDS

-- A setting: tag and flags, length of the value, then the name with its length, and the template.
local SETTING_HEADER = 8
local ALWAYS = 1
local HEADER_CHANGES = {
  "set-request",
  "drop-request",
  "add-response",
  "hide-response",
  "pass-response",
  "ignore-response",
}

-- Tags of error pages, whose names are `STATUS CODES [TYPE]`, and of the headers of the page before.
local ERROR_RETURN = 7
local ERROR_REDIRECT = 8
local ERROR_HEADER = 9

local settings = {}

local function render(context, index)
  local memory = context.memory
  local size = context.functions.njk_render_setting(memory.instance, context.address, index)
  return size > 0 and memory:text(context:word(F.RENDERED), size) or ""
end

local function add_error_page(pages, tag, name, value)
  if tag == ERROR_HEADER then
    local last = pages[#pages]
    if last and last.headers then
      last.headers[#last.headers + 1] = { op = "add-response", name = name, value = value, always = true }
    end
    return
  end
  -- The core does not look into names: those of an image from elsewhere may be anything.
  local status, list, content_type = match(name, "^(%d+) ([%d,]+) ?(%C*)$")
  if not status or (status ~= "0" and not match(status, "^[1-9]%d%d$")) then
    return
  end
  local codes = {}
  for code in gmatch(list, "%d+") do
    codes[tonumber(code)] = true
  end
  status = tonumber(status)
  if tag == ERROR_REDIRECT then
    pages[#pages + 1] = { codes = codes, kind = "redirect", status = status, location = value }
    return
  end
  local page = { codes = codes, kind = "return", content_type = content_type, body = value, headers = {} }
  page.status = status ~= 0 and status or nil
  pages[#pages + 1] = page
end

function settings.read(context, length)
  local memory = context.memory
  local changes, pages, index = {}, false, 0
  local at = context:word(F.SETTINGS)
  local last = at + length
  while at < last do
    local head = memory:word(at)
    local tag = band(head, 0x7fff)
    local op = HEADER_CHANGES[tag]
    if op == "drop-request" then
      changes[#changes + 1] = { op = op }
    elseif op then
      local change = { op = op, name = memory:text(at + SETTING_HEADER + 4, memory:word(at + SETTING_HEADER)) }
      if op == "set-request" or op == "add-response" then
        change.value = render(context, index)
        if op == "add-response" then
          change.always = band(rshift(head, 16), ALWAYS) ~= 0
        end
      end
      changes[#changes + 1] = change
    elseif tag >= ERROR_RETURN and tag <= ERROR_HEADER then
      pages = pages or {}
      local name = memory:text(at + SETTING_HEADER + 4, memory:word(at + SETTING_HEADER))
      add_error_page(pages, tag, name, render(context, index))
    end
    at = at + SETTING_HEADER + memory:word(at + 4)
    index = index + 1
  end
  return changes, pages
end

return settings
