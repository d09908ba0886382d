-- The status codes of the core (core-wasm/ABI.md, "Status codes"), and what they mean.
--
--   status.text(code) -> what an error code says, for logs

local _M = {
  OK = 0,
  NEED = 1,
  BUSY = 2,
  MEMORY = -9,
  STATE = -11,
  TRAPPED = -128,
  -- Of njk_decide alone (core-wasm/native/decide.c): the request goes on to a peer as it came.
  PLAIN = 100,
}

local TEXTS = {
  [-1] = "a regex does not compile",
  [-2] = "the image ends before its stated size",
  [-3] = "these bytes are no image of this kind",
  [-4] = "the image has another format version",
  [-5] = "the image does not fit its checksum",
  [-6] = "an offset or count of the image is not allowed",
  [-7] = "the rules or peers can't be compiled",
  [-8] = "a limit of the format is exceeded",
  [-9] = "the core has no memory left",
  [-10] = "a pointer or length is not valid",
  [-11] = "the call does not fit the state",
  [-12] = "the image has a setting that must be understood and is not known",
  [-128] = "the core trapped",
}

function _M.text(code)
  return TEXTS[code] or ("status " .. tostring(code))
end

return _M
