-- A claim of a token that is there for whoever spends it first: what most claims meet, answered before anything else is
-- set up. Whatever is not plainly so is left to what follows, which gives the same answer.
do
  local raw = call('GET', KEYS[1])
  local found = raw and decode(raw)
  local token = found and found.state == 'ready' and found.digest == ARGV[11] and found.token
  local here = token and (ARGV[12] == '' or ARGV[12] == found.page)
  if here and token.epoch == ARGV[8] and now < tonumber(found.keep_until) then
    local left = tonumber(token.expires_at) - now
    local solution = left > 0 and call('GET', KEYS[4])
    if solution then
      return string.format('ready %d %.17g %.17g %s', found.generation, now - tonumber(token.not_ready_at), left, solution)
    end
  end
end
