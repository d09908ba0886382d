--- Error pages of objects: what takes the place of an answer with a status that they list, be it a peer's or the proxy's own.
-- Their values are filled in already, see balancer.core.decision.
local ngx = ngx or njt
local headers = require "balancer.headers"

local lower = string.lower

local error_pages = {}

--- What frames the answer; NGINX writes it by itself.
local KEPT = { ["connection"] = true, ["transfer-encoding"] = true, ["date"] = true, ["server"] = true }

--- The page for a status, if there is one: the first that lists it.
function error_pages.find(pages, status)
  if not pages then return nil end
  for i = 1, #pages do
    if pages[i].codes[status] then return pages[i] end
  end
  return nil
end

--- Sets what the page says of the head of the answer to `status`.
-- @return the status of the answer; its body and the type of it, or nil where the body is to show the status
function error_pages.apply(page, status)
  if page.kind == "redirect" then
    ngx.header["Location"] = headers.value(page.location)
    return page.status
  end
  local own = page.status or status
  headers.add_to_answer(page.headers, own)
  return own, page.body, headers.value(page.content_type)
end

--- Takes out of the answer at hand, in a header filter, all that the peer has said of it.
function error_pages.clear_head()
  for name in pairs(ngx.resp.get_headers(0, true)) do
    if not KEPT[lower(name)] then ngx.header[name] = nil end
  end
end

return error_pages
