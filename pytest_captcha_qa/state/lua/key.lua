-- What the transitions of one key share; `engine/key_state.py` in Lua.
-- KEYS: meta, lease, task, token, verify, session. What state the key is in stands in meta alone; the others are only
-- looked up. ARGV[1..6]: seconds of KeyTimes, [8]: epoch, [9]: nonce for a new lease. A transition's own begin at 10.
-- Every script answers {"1" if it wrote else "0", kind, ...}.
local META, LEASE, TASK, TOKEN, VERIFY, SESSION = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local epoch, new_nonce = ARGV[8], ARGV[9]
local LEASE_TIME, HTTP, SOLVE = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local REDELIVERY, KEEP, TOMBSTONE = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local wrote = '0'

-- The moments of each part, named one by one: looking through whole tables would cost more than all the rest.
local KEY_MOMENTS, LEASE_MOMENTS = { 'keep_until' }, { 'lapses' }
local TASK_MOMENTS = { 'submitted_at', 'not_ready_at', 'resume_until' }
local TOKEN_MOMENTS, FAILURE_MOMENTS = { 'not_ready_at', 'expires_at' }, { 'not_before', 'forget_at' }

local function each_moment(part, names, change)
  for index = 1, part and #names or 0 do
    local moment = part[names[index]]
    part[names[index]] = moment and change(moment)
  end
  return part
end

local function stored(name, names)
  local raw = call('GET', name)
  return raw and each_moment(decode(raw), names, tonumber) or nil
end

local key = stored(META, KEY_MOMENTS)
if key and now >= key.keep_until then
  key = nil
elseif key then
  each_moment(key.token, TOKEN_MOMENTS, tonumber)
  each_moment(key.failure, FAILURE_MOMENTS, tonumber)
end
local holder, task

-- Only a token that nobody has spent yet can be answered without these.
local function load_holder()
  holder = stored(LEASE, LEASE_MOMENTS) or { owner = '', nonce = '', lapses = 0 }
  task = stored(TASK, TASK_MOMENTS)
end

local function put(name, part, names, keep)
  call('SET', name, encode(each_moment(part, names, text)), 'PX', keep)
  each_moment(part, names, tonumber)
end

-- `begun`: the other keys are gone, so nothing of theirs has to live longer.
local function save(begun)
  wrote = '1'
  local keep = ttl(key.keep_until)
  each_moment(key.token, TOKEN_MOMENTS, text)
  each_moment(key.failure, FAILURE_MOMENTS, text)
  put(META, key, KEY_MOMENTS, keep)
  each_moment(key.token, TOKEN_MOMENTS, tonumber)
  each_moment(key.failure, FAILURE_MOMENTS, tonumber)
  put(LEASE, holder, LEASE_MOMENTS, keep)
  if begun then
    return
  end
  if task then
    put(TASK, task, TASK_MOMENTS, keep)
  end
  call('PEXPIRE', VERIFY, keep)
  call('PEXPIRE', SESSION, keep)
end

local function live()
  return now < holder.lapses
end

local function keep_after(moment)
  key.keep_until = math.max(key.keep_until, moment + TOMBSTONE)
end

local function lease_for(seconds)
  holder.lapses = now + seconds
  keep_after(holder.lapses)
end

local function take(owner)
  holder = { owner = owner, nonce = new_nonce, lapses = now }
  lease_for(LEASE_TIME)
end

local function token_over()
  if not key.token or now >= key.token.expires_at then
    return 'expired'
  end
  return key.token.epoch ~= epoch and 'epoch' or nil
end

local function ready(solution)
  local token = key.token
  local age, left = text(now - token.not_ready_at), text(token.expires_at - now)
  return { wrote, 'ready', text(key.generation), age, left, solution }
end

local function ok()
  return { wrote, 'ok' }
end

local function lost()
  return { wrote, 'lost', key and text(key.generation) or false, key and key.state or false }
end

-- Whether the lease in ARGV[10] (generation) and ARGV[11] (nonce) may write in this state.
local function held(allowed)
  if not key then
    return false
  end
  load_holder()
  return key.generation == tonumber(ARGV[10]) and holder.nonce == ARGV[11] and allowed[key.state]
end
