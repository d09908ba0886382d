-- The linear memory of an instance: addresses are numbers, unsigned. Nothing of it is kept in pointers, since it moves.
--
--   Memory.new(library, pages) -> memory, or nil and what is wrong
--   memory:alloc(size)         -> address, or nil where memory is short or the instance has trapped
--   memory:free(address)
--   memory:place(text)         -> address of a copy, to be freed; nil as alloc
--   memory:put(address, text)  copies a text to where room is
--   memory:text(address, length) -> a text
--   memory:close()             gives all of it back at once, not when the garbage collector comes by; it ends the instance
--   memory:word(address)       -> the unsigned word at an address that is a multiple of 4

local ffi = require "ffi"

local copy = ffi.copy
local ffi_string = ffi.string

local Memory = {}
Memory.__index = Memory

function Memory.new(library, pages)
  local instance, err = library.new_instance(pages)
  if not instance then
    return nil, err
  end
  return setmetatable({ functions = library.functions, library = library, instance = instance }, Memory)
end

function Memory:alloc(size)
  local address = self.functions.njk_alloc(self.instance, size)
  if address == 0 or self.instance.trap ~= 0 then
    return nil
  end
  return address % 4294967296
end

function Memory:free(address)
  self.functions.njk_free(self.instance, address)
end

function Memory:put(address, text)
  copy(self.instance.bytes + address, text, #text)
end

function Memory:place(text)
  local address = self:alloc(math.max(1, #text))
  if address then
    self:put(address, text)
  end
  return address
end

function Memory:text(address, length)
  return ffi_string(self.instance.bytes + address, length)
end

function Memory:close()
  local instance = ffi.gc(self.instance, nil)
  self.instance = nil
  self.functions.njk_delete(instance)
end

function Memory:word(address)
  return self.instance.words[address / 4]
end

return Memory
