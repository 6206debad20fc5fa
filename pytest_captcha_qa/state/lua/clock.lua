-- Every script begins with this. ARGV[CLOCK]: the time in seconds, empty for the server's clock.
local call, encode, decode = redis.call, cjson.encode, cjson.decode

local manual = ARGV[CLOCK] ~= ''
local now
if manual then
  now = tonumber(ARGV[CLOCK])
else
  local time = call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end

-- cjson writes 14 digits, too few for a moment; so moments are stored, and answered, as text.
local function text(number)
  return string.format('%.17g', number)
end

-- Milliseconds until a moment. Those of a test's own clock are none of the server's, so then nothing expires by itself.
local function ttl(moment)
  if manual then
    return 3600000
  end
  return math.max(1, math.ceil((moment - now) * 1000))
end
