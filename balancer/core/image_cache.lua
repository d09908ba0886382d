-- What was read from images, by their address. An address may be given to another image later: an entry counts only while
-- the image there has the checksum that it had, so that a change of one host or upstream makes nothing else be read again.
--
--   ImageCache.new(read)     `read(memory, image)` makes the value for an image
--   cache:get(memory, image) -> what `read` made of the image at this address
--   cache:changed()             to be called for every change of the table
--   cache:clear()

-- Where images have their checksum: shards and peer sets alike, in words (core-wasm/ABI.md).
local CHECKSUM = 2
-- After so many changes all is forgotten, so that what was read of images that are gone does not stay for ever.
local CHANGES = 1024

local ImageCache = {}
ImageCache.__index = ImageCache

function ImageCache.new(read)
  return setmetatable({ read = read, entries = {}, changes = 0, edition = 0 }, ImageCache)
end

-- Looks at the checksum, for the first request after a change.
local function compare(self, memory, image, entry)
  local words = memory.instance.words
  local at = image / 4 + CHECKSUM
  local low, high = words[at], words[at + 1]
  if not entry or entry.low ~= low or entry.high ~= high then
    entry = { low = low, high = high, value = self.read(memory, image), edition = 0 }
    self.entries[image] = entry
  end
  entry.edition = self.edition
  return entry.value
end

function ImageCache:get(memory, image)
  local entry = self.entries[image]
  if entry and entry.edition == self.edition then
    return entry.value
  end
  return compare(self, memory, image, entry)
end

function ImageCache:changed()
  self.edition = self.edition + 1
  self.changes = self.changes + 1
  if self.changes >= CHANGES then
    self:clear()
  end
end

function ImageCache:clear()
  self.changes = 0
  self.entries = {}
end

return ImageCache
