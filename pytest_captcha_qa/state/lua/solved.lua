-- ARGV[12]: digest of the solution, [13]: its age in seconds at most, [14]: the solution.
local token = key and key.token
if token and key.generation == tonumber(ARGV[10]) and token.nonce == ARGV[11] and token.digest == ARGV[12] then
  return ready(ARGV[14]) -- the repeat of a call that succeeded; it may have been spent since
end
if not held({ submitted = true }) then
  return lost()
end
local not_ready_at = now - math.max(0, tonumber(ARGV[13]))
key.state = 'ready'
key.token = {
  digest = ARGV[12], not_ready_at = not_ready_at, expires_at = not_ready_at + KEEP, epoch = epoch, nonce = ARGV[11],
}
keep_after(math.max(now, key.token.expires_at))
call('SET', TOKEN, ARGV[14], 'PX', ttl(key.token.expires_at))
save()
return ready(ARGV[14])
