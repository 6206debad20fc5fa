-- ARGV[12]: outcome, [13]: the session as JSON, or empty.
if not held({ spent = true, done = true }) then
  return lost()
end
if key.state == 'done' then
  return key.outcome == ARGV[12] and (call('GET', SESSION) or '') == ARGV[13] and ok() or lost()
end
-- Not before the last Ready of this generation has expired in its holder's hands.
key.keep_until = math.max(now + TOMBSTONE, key.token and key.token.expires_at or now)
key.state, key.token, key.outcome = 'done', nil, ARGV[12]
call('DEL', TOKEN)
if ARGV[13] ~= '' then
  call('SET', SESSION, ARGV[13])
end
save()
return ok()
