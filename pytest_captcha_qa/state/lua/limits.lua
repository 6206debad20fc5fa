-- The cells of `state/cells.py` in Lua. KEYS[1]: the cell, ARGV[2]: what to do, its arguments from ARGV[3].
local CELL = KEYS[1]
local cell
do
  local raw = call('GET', CELL)
  cell = raw and decode(raw) or nil
  if cell and now >= tonumber(cell.lapses) then
    cell = nil
  end
end

local function keep(value, lapses)
  call('SET', CELL, encode({ value = value, lapses = text(lapses) }), 'PX', ttl(lapses))
end

local DAY = 86400
local SPACING_KEPT = DAY
local SAMPLES_KEPT = 30 * DAY

local function slots()
  local held, taken = {}, 0
  for owner, lapses in pairs(cell and cell.value or {}) do
    if now < tonumber(lapses) then
      held[owner], taken = lapses, taken + 1
    end
  end
  return held, taken
end

local function keep_slots(held)
  local last
  for _, lapses in pairs(held) do
    last = math.max(last or 0, tonumber(lapses))
  end
  if last then
    keep(held, last)
  else
    call('DEL', CELL)
  end
end

local function row(value)
  return { text(value[1]), text(tonumber(value[3]) - tonumber(value[2])), value[4] }
end

local function moment_kept(moment)
  keep(text(moment), moment + SPACING_KEPT)
end

local actions = {
  acquire = function(owner, limit, lease)
    local held, taken = slots()
    if not held[owner] and taken >= tonumber(limit) then
      return 0
    end
    held[owner] = text(now + tonumber(lease))
    keep_slots(held)
    return 1
  end,
  release = function(owner)
    local held = slots()
    held[owner] = nil
    keep_slots(held)
    return 1
  end,
  add = function(amount, limit, seconds)
    local value = (cell and cell.value or 0) + tonumber(amount)
    if limit ~= '' and value > tonumber(limit) then
      return 0
    end
    keep(value, cell and tonumber(cell.lapses) or now + tonumber(seconds))
    return 1
  end,
  next_allowed = function(spacing)
    local moment = cell and math.max(now, tonumber(cell.value) + tonumber(spacing)) or now
    moment_kept(moment)
    return text(moment - now)
  end,
  hold = function(seconds)
    moment_kept(math.max(now + tonumber(seconds), cell and tonumber(cell.value) or now))
    return 1
  end,
  strike = function(note, seconds)
    local failures, first = 0, text(now)
    if cell then
      failures, first = cell.value[1], cell.value[2]
    end
    local value = { failures + 1, first, text(now), note }
    keep(value, now + tonumber(seconds))
    return row(value)
  end,
  streak = function()
    return cell and row(cell.value) or false
  end,
  raise_flag = function(value, seconds)
    local lapses = now + tonumber(seconds)
    if not cell or tonumber(cell.lapses) <= lapses then
      keep(value, lapses)
    end
    return 1
  end,
  value = function()
    return cell and cell.value or false
  end,
  forget = function()
    call('DEL', CELL)
    return 1
  end,
  sample = function(value, most)
    local values = cell and cell.value or {}
    values[#values + 1] = value
    while #values > tonumber(most) do
      table.remove(values, 1)
    end
    keep(values, now + SAMPLES_KEPT)
    return 1
  end,
}
return actions[ARGV[2]](unpack(ARGV, 3))
