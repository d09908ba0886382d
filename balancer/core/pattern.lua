-- Regular expressions of the core outside of shards: RE2's syntax over bytes, linear in the length of the text.
--
--   pattern.compile(table, text)         -> bytes of the image, or nil and what is wrong
--   pattern.holds(table, image, subject) -> true if the text holds a match. `image` must come from `compile`

local status = require "balancer.core.status"

local pattern = {}

-- Address of each text, or nil where memory is short; all that was had is given back then.
local function place(memory, ...)
  local blocks = {}
  for i, text in ipairs { ... } do
    blocks[i] = memory:place(text)
    if not blocks[i] then
      for _, block in ipairs(blocks) do memory:free(block) end
      return nil
    end
  end
  return blocks
end

local function free(memory, ...)
  if memory.instance.trap ~= 0 then return end
  for _, block in ipairs { ... } do memory:free(block) end
end

function pattern.compile(table_, text)
  local memory = table_.memory
  local blocks = place(memory, text, ("\0"):rep(16))
  if not blocks then return table_:failure(status.MEMORY) end
  local at, result = blocks[1], blocks[2]
  local code = table_.functions.njk_regex_compile(memory.instance, at, #text, 0, result)
  if code < 0 then
    free(memory, at, result)
    return table_:failure(code)
  end
  local image = memory:word(result)
  local content = memory:text(image, memory:word(result + 4))
  free(memory, image, at, result)
  return content
end

function pattern.holds(table_, image, subject)
  local memory, functions = table_.memory, table_.functions
  local blocks = place(memory, image, subject)
  if not blocks then return false end
  local at, text = blocks[1], blocks[2]
  local scratch = memory:alloc(math.max(1, functions.njk_regex_scratch_size(memory.instance, at, #image)))
  local found = scratch and functions.njk_regex_match(memory.instance, at, #image, text, #subject, scratch, 0)
  free(memory, at, text, scratch)
  if found and found < 0 then table_:failure(found) end
  return found == 1
end

return pattern
