-- ARGV[12]: seconds since a poll said "not ready", or empty.
if not held({ leased = true, intent = true, submitted = true, spent = true }) then
  return lost()
end
local last_not_ready = tonumber(ARGV[12])
if key.state == 'submitted' and task and last_not_ready then
  task.not_ready_at = math.max(task.not_ready_at, now - math.max(0, last_not_ready))
end
lease_for(math.max(holder.lapses - now, LEASE_TIME))
save()
return ok()
