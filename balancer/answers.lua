--- Answers of the proxy itself: pages that show a status and nothing of the request, redirects and returned bodies.
local ngx = ngx or njt
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

--- Answers with the page for a status. `closes`: the connection ends after it, which NGINX itself sees to for 400, 413 and 414;
-- it comes back for the page by way of `error_page`.
function answers.page(status, closes)
  if closes then return ngx.exit(status) end
  return send(status, PAGE_TYPE, page(status))
end

--- Carries out a decision to redirect or to return.
function answers.decided(decision)
  local status = decision.status
  if decision.action == "return" and status == 400 and not decision.origin then return answers.page(400, true) end
  if decision.headers then headers.add_to_answer(decision.headers, status) end
  if decision.action == "redirect" then
    ngx.header["Location"] = headers.value(decision.location)
  elseif decision.body then
    return send(status, headers.value(decision.content_type or "text/plain"), decision.body)
  end
  return send(status, PAGE_TYPE, page(status))
end

--- The page for a status that NGINX itself gave; in the location that `error_page` names. `given`: a status that counts instead.
function answers.own(given)
  local status = given or ngx.status
  return answers.page(MEANINGS[status] or status)
end

return answers
