if not held({ leased = true, intent = true }) then
  return lost()
end
if key.state == 'intent' then
  return ok()
end
if not live() then
  return lost()
end
key.state = 'intent'
lease_for(HTTP + LEASE_TIME)
save()
return ok()
