if not held({ spent = true, ready = true }) then
  return lost()
end
if key.state == 'spent' then
  key.state = 'ready'
  save()
end
return ok()
