-- ARGV[10]: owner, [11]: fingerprint, [12]: page or empty, [13]: "1" for a fresh claim. `engine/claims.py` in Lua.
local owner, digest, page, fresh = ARGV[10], ARGV[11], ARGV[12], ARGV[13] == '1'

local function granted()
  return {
    wrote, 'granted', text(key.generation), holder.nonce, text(key.tries), key.event or false, key.replaced or false,
  }
end

local function begin(generation, tries, event, replaced)
  key = {
    state = 'leased', generation = generation, digest = digest, page = page ~= '' and page or nil,
    keep_until = now, tries = tries, event = event, replaced = replaced,
  }
  task = nil
  take(owner)
  call('DEL', TASK, TOKEN, VERIFY, SESSION)
  save(true)
  return granted()
end

if not key then
  return begin(1, 0)
end

local state = key.state
local other_digest = key.digest ~= digest
local other_page = not other_digest and page ~= '' and page ~= (key.page or '')
local solution
if state == 'ready' then
  solution = call('GET', TOKEN)
else
  load_holder()
end

local renewals = {
  leased = function()
    return not live() and fresh and other_digest and 'fresh' or nil
  end,
  intent = function()
    return nil
  end,
  submitted = function()
    if live() then
      return nil
    end
    if not task or now >= task.resume_until then
      return 'expired'
    end
    return other_page and 'page' or nil
  end,
  ready = function()
    -- A token that the server dropped before its time (eviction) can be handed to nobody.
    return token_over() or other_page and 'page' or not solution and 'expired' or nil
  end,
  spent = function()
    return fresh and 'fresh' or nil
  end,
  done = function()
    return fresh and 'fresh' or nil
  end,
  failed = function()
    if not key.failure or now >= key.failure.forget_at then
      return 'expired'
    end
    return fresh and other_digest and 'fresh' or nil
  end,
}

local replaced = renewals[state]()
if replaced then
  return begin(key.generation + 1, 0, nil, replaced)
end
if other_digest then
  return { wrote, 'conflict' }
end

local function busy()
  return { wrote, 'busy', text(math.min(1, holder.lapses - now + 0.05)) }
end

local function repeated()
  return holder.owner == owner and not other_page
end

local function resume()
  local age, not_ready_age = text(now - task.submitted_at), text(now - task.not_ready_at)
  local suspect = task.epoch ~= epoch and '1' or '0'
  return {
    wrote, 'resume', text(key.generation), holder.nonce, task.id, age, not_ready_age, suspect, text(key.tries),
  }
end

local answers = {
  leased = function()
    if not live() then
      return begin(key.generation, key.tries, key.event, key.replaced)
    end
    if not repeated() then
      return busy()
    end
    lease_for(LEASE_TIME)
    save()
    return granted()
  end,
  intent = function()
    if live() then
      return busy()
    end
    return begin(key.generation, key.tries, 'submit_unknown')
  end,
  submitted = function()
    if not live() then
      take(owner)
    elseif task and repeated() then
      lease_for(LEASE_TIME)
    else
      return busy()
    end
    save()
    return resume()
  end,
  ready = function()
    return ready(solution)
  end,
  spent = function()
    return live() and busy() or { wrote, 'indeterminate' }
  end,
  done = function()
    return { wrote, 'done', key.outcome, call('GET', SESSION) }
  end,
  failed = function()
    local failure = key.failure
    if not failure.not_before then
      return { wrote, 'failed', failure.code, false }
    end
    if now < failure.not_before then
      return { wrote, 'failed', failure.code, text(failure.not_before - now) }
    end
    return begin(key.generation, key.tries + 1)
  end,
}
return answers[state]()
