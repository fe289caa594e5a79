-- Load for the mock provider: wrk -t1 -c16 -d6s -s benches/serve.lua http://ADDRESS
--
-- BYTES   size of the conversation in a request; a few words when absent
-- CONVS   how many conversations take turns; one when absent

local bytes = tonumber(os.getenv("BYTES") or "0")
local conversations = tonumber(os.getenv("CONVS") or "1")

local function message(role, text)
  return '{"role":"' .. role .. '","content":"' .. text .. '"}'
end

local function body(number)
  local messages = { message("system", "You are a careful assistant.") }
  local filler = string.rep("what is it about the light? ", 12)
  local size, turn = 0, 0
  while size < bytes do
    turn = turn + 1
    messages[#messages + 1] = message("user", number .. "." .. turn .. ": " .. filler)
    messages[#messages + 1] = message("assistant", number .. "." .. turn .. ": it shines at night. " .. filler)
    size = size + #messages[#messages] + #messages[#messages - 1]
  end
  messages[#messages + 1] = message("user", "Conversation " .. number .. ": go on.")
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
