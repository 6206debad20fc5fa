-- ARGV[12]: the provider's task id.
if not held({ intent = true, submitted = true }) then
  return lost()
end
if key.state == 'submitted' then
  return task and task.id == ARGV[12] and ok() or lost()
end
key.state = 'submitted'
task = {
  id = ARGV[12], submitted_at = now, not_ready_at = now, resume_until = now + SOLVE + REDELIVERY, epoch = epoch,
}
lease_for(LEASE_TIME)
save()
return ok()
