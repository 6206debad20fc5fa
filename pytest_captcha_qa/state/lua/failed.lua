-- ARGV[12]: code, [13]: seconds until a retry may start, or empty for never.
if not held({ leased = true, intent = true, submitted = true, failed = true }) then
  return lost()
end
if key.state == 'failed' then
  return key.failure and key.failure.code == ARGV[12] and ok() or lost()
end
local pause = tonumber(ARGV[13])
local retry_at = now + math.max(0, pause or 0)
key.state = 'failed'
key.failure = { code = ARGV[12], not_before = pause and retry_at or nil, forget_at = retry_at + REDELIVERY }
keep_after(retry_at)
save()
return ok()
