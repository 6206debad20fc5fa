-- ARGV[10]: generation, [11]: digest of the solution, [12]: consumer.
-- The token is compared too: a key that was forgotten and begun anew counts its generations from 1 again.
if not key or key.generation ~= tonumber(ARGV[10]) or not key.token or key.token.digest ~= ARGV[11] then
  return lost()
end
load_holder()
if key.state == 'spent' and holder.owner == ARGV[12] then
  lease_for(LEASE_TIME)
  save()
  return { wrote, 'already_mine', holder.nonce }
end
if key.state ~= 'ready' then
  return lost()
end
if token_over() then
  return { wrote, 'expired' }
end
key.state = 'spent'
take(ARGV[12])
save()
return { wrote, 'won', holder.nonce }
