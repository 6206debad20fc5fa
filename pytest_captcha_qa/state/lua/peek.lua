if not key then
  return { wrote, 'nothing' }
end
return { wrote, 'key', unpack(call('MGET', META, LEASE, TASK, TOKEN, VERIFY, SESSION)) }
