--- Answers of the control endpoint: JSON, never kept by anybody.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local cjson = require "cjson.safe"

local answer = {}

--- Sends `json` (text) with a status. Ends the request.
function answer.json(status, json)
  ngx.status = status
  ngx.header["Content-Type"] = "application/json"
  ngx.header["Cache-Control"] = "no-store"
  ngx.header["Content-Length"] = #json + 1
  ngx.print(json, "\n")
  return ngx.exit(ngx.HTTP_OK)
end

--- Refuses a request: a stable code, and text for people.
function answer.refuse(status, code, message)
  return answer.json(status, cjson.encode({ code = code, message = message }))
end

--- An array as JSON. cjson takes an empty table for an object.
function answer.array(list)
  return #list == 0 and "[]" or cjson.encode(list)
end

return answer
