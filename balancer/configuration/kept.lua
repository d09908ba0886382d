--- What is posted and outlives a restart of NGINX: backends and settings, as records. Workers write no file: the controller reads them here,
-- keeps them in its journal, and puts back what an NGINX has started without. Certificates are not among them: keys are never given
-- back.
-- Code for changes, not for requests: compiled it would only take memory, more of it with each way through it.
require("jit").off(true, true)

local ngx = ngx or njt
local answer = require "balancer.configuration.answer"
local answers = require "balancer.control.answer"
local body = require "balancer.control.body"
local follower = require "balancer.state.follower"
local record = require "balancer.state.record"
local state = require "balancer.control.state"
local store = require "balancer.state.store"

local kept = {}

local KINDS = { [record.BACKEND] = true, [record.SETTING] = true }
local CONFLICT = 409

--- `GET /configuration/kept`: all that is to be kept, one record after another.
function kept.get()
  ngx.header["Content-Type"] = "application/octet-stream"
  ngx.header["Cache-Control"] = "no-store"
  for i, name in ipairs(store.names()) do
    answer.take_turns(i)
    local kind, key = name:match("^(%d+):(.*)$")
    kind = tonumber(kind)
    local digest, content = store.piece(name)
    -- It may have gone since.
    if KINDS[kind] and digest then ngx.print(record.write(kind, key, digest, content)) end
  end
  return ngx.exit(ngx.HTTP_OK)
end

--- Nil and why, where a record is not one of those that are kept.
local function read(text)
  local records, why = record.read_all(text)
  for _, one in ipairs(records or {}) do
    if not KINDS[one.kind] or one.op ~= record.SET then return nil, "a record is none of those that are kept" end
  end
  return records, why
end

--- `POST /configuration/kept`: records to be put back. 409 where anything was posted since NGINX has started: that is newer.
function kept.post()
  local text = body.read()
  if not text then return answers.refuse(500, "STATE_BODY", "the body can't be read from its file") end
  local records, why = read(text)
  if not records then return answers.refuse(ngx.HTTP_BAD_REQUEST, "STATE_RECORDS", why .. "; nothing was taken") end
  local good, failures = state.validate(records)
  local seq, refused = state.write(function()
    local _, posts = store.posts()
    if posts > 0 then return nil, "posted" end
    return good
  end, {})
  if refused == "posted" then return answers.refuse(CONFLICT, "STATE_POSTED", "newer ones have been posted; nothing was taken") end
  if refused == "locked" then return answers.refuse(503, "STATE_BUSY", "another writer is at work") end
  if not seq then return answers.refuse(507, "STATE_FULL", "the shared state has no room; nothing was taken") end
  for _, one in ipairs(refused) do
    failures[#failures + 1] = { kind = one.kind, key = one.key, code = "PROXY_STATE_FULL", message = "there is no room for it" }
  end
  follower.catch_up()
  state.await_workers(seq)
  state.add_worker_failures(seq, failures)
  return answers.json(ngx.HTTP_OK, '{"failures":' .. answers.array(failures) .. "}")
end

return kept
