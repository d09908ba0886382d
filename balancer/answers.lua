--- Answers of the proxy itself: pages that show a status and nothing of the request, redirects and returned bodies.
local ngx = ngx or njt
local error_pages = require "balancer.error_pages"
local headers = require "balancer.headers"

local format = string.format

local answers = {}

--- Reason phrases, as of RFC 9110.
local PHRASES = {
  [200] = "OK", [201] = "Created", [202] = "Accepted", [204] = "No Content",
  [301] = "Moved Permanently", [302] = "Found", [303] = "See Other", [304] = "Not Modified",
  [307] = "Temporary Redirect", [308] = "Permanent Redirect",
  [400] = "Bad Request", [401] = "Unauthorized", [402] = "Payment Required", [403] = "Forbidden", [404] = "Not Found",
  [405] = "Method Not Allowed", [406] = "Not Acceptable", [408] = "Request Timeout", [409] = "Conflict", [410] = "Gone",
  [411] = "Length Required", [412] = "Precondition Failed", [413] = "Payload Too Large", [414] = "URI Too Long",
  [415] = "Unsupported Media Type", [416] = "Range Not Satisfiable", [417] = "Expectation Failed", [418] = "I'm a Teapot",
  [421] = "Misdirected Request", [422] = "Unprocessable Entity", [423] = "Locked", [425] = "Too Early",
  [426] = "Upgrade Required", [428] = "Precondition Required", [429] = "Too Many Requests",
  [431] = "Request Header Fields Too Large", [451] = "Unavailable For Legal Reasons",
  [500] = "Internal Server Error", [501] = "Not Implemented", [502] = "Bad Gateway", [503] = "Service Unavailable",
  [504] = "Gateway Timeout", [505] = "HTTP Version Not Supported",
}
local PAGE_TYPE = "text/html; charset=utf-8"
local PAGE = "<!DOCTYPE html>\n<html><head><title>%s</title></head>\n<body><h1>%s</h1></body></html>\n"
--- NGINX's answer to a Transfer-Encoding that it does not know.
local MEANINGS = { [501] = 400 }

local pages = {}

--- The page for a status.
local function page(status)
  local known = pages[status]
  if not known then
    local title = status .. " " .. (PHRASES[status] or "Status")
    known = format(PAGE, title, title)
    pages[status] = known
  end
  return known
end

local function send(status, content_type, body)
  ngx.status = status
  if status ~= 204 and status ~= 304 then
    ngx.header["Content-Type"] = content_type
    ngx.header["Content-Length"] = #body
    ngx.print(body)
  end
  return ngx.exit(ngx.HTTP_OK)
end

--- Head, body and type of what stands for `status`: a page of the object among `pages`, else one that shows the status.
local function answer_for(pages, status)
  local found = error_pages.find(pages, status)
  local body, content_type
  if found then
    status, body, content_type = error_pages.apply(found, status)
  end
  return status, body or page(status), content_type or PAGE_TYPE
end
answers.for_status = answer_for

--- Answers with the page for a status. `pages`: those of the object, if there are any.
function answers.page(status, pages)
  local body, content_type
  status, body, content_type = answer_for(pages, status)
  return send(status, content_type, body)
end

--- As page, and the connection ends after it. NGINX itself sees to that for 400, 413 and 414, and comes back for the page by way of
-- `error_page`.
function answers.refuse(status)
  return ngx.exit(status)
end

--- Carries out a decision to redirect or to return.
function answers.decided(decision)
  local status = decision.status
  local pages = decision.action == "return" and decision.error_pages or nil
  local body, content_type
  status, body, content_type = answer_for(pages, status)
  if decision.headers then headers.add_to_answer(decision.headers, status) end
  if decision.action == "redirect" then
    ngx.header["Location"] = headers.value(decision.location)
  elseif decision.body then
    body, content_type = decision.body, headers.value(decision.content_type or "text/plain")
  end
  return send(status, content_type, body)
end

--- The page for a status that NGINX itself gave; in the location that `error_page` names. `given`: a status that counts instead.
-- `pages`: those of the object.
function answers.own(given, pages)
  local status = given or ngx.status
  return answers.page(MEANINGS[status] or status, pages)
end

return answers
