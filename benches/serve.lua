-- Load for `hermes-lab serve ./benches/serve.toml --clock real --ledger FILE`:
--   wrk -t1 -c16 -d6s -s benches/serve.lua http://ADDRESS
--
-- BYTES   size of the conversation in a request; a few words when absent
-- CONVS   how many conversations take turns; one when absent

local bytes = tonumber(os.getenv("BYTES") or "0")
local conversations = tonumber(os.getenv("CONVS") or "1")

local function message(role, text)
  return '{"role":"' .. role .. '","content":"' .. text .. '"}'
end

-- One conversation has gone on for a while; of several each has just begun.
local function body(number)
  local messages = { message("system", "You are a careful assistant.") }
  if conversations > 1 then
    local words = "conversation " .. number .. " asks about the light. "
    local filler = string.rep(words, math.floor(bytes / #words))
    messages[#messages + 1] = message("user", words .. filler .. "Go on.")
  else
    local filler = string.rep("what is it about the light? ", 12)
    local size, turn = 0, 0
    while size < bytes do
      turn = turn + 1
      messages[#messages + 1] = message("user", turn .. ": " .. filler)
      messages[#messages + 1] = message("assistant", turn .. ": it shines at night. " .. filler)
      size = size + #messages[#messages] + #messages[#messages - 1]
    end
    messages[#messages + 1] = message("user", "Go on.")
  end
  return '{"model":"m","messages":[' .. table.concat(messages, ",") .. "]}"
end

local requests = {}
for number = 1, conversations do
  local headers = { ["Content-Type"] = "application/json" }
  requests[number] = wrk.format("POST", "/v1/chat/completions", headers, body(number))
end

local last = 0
request = function()
  last = last % conversations + 1
  return requests[last]
end
