-- ARGV[10]: generation, [11]: verdict. One about another generation is too late and dropped.
if key and key.generation == tonumber(ARGV[10]) then
  wrote = '1'
  local verification = { generation = key.generation, verdict = ARGV[11] }
  call('SET', VERIFY, encode(verification), 'PX', ttl(key.keep_until))
end
return ok()
