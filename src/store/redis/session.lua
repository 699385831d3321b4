-- Carries out one operation on one session, all or nothing, if the session is still the one the operation was decided on; else
-- answers with the session as it is. It knows no rule of the protocol: what to write was decided by the state machine.
--
-- KEYS  the session's hash, the hash of its attributes, what this operation takes away (if it asks for payloads)
-- ARGV  the version the operation was decided on ('' for no session ever), the new version ('' to look only), the head, the
--       items of eight lists
-- Head  the first and the last but one millisecond of server time it was decided for, the time (negative for the server's),
--       milliseconds to keep the keys (0: as they are kept already) and what is taken away; 1 or 0: everything goes first, it only
--       frees, it may have been sent before; the lengths of the lists
-- Answer: 1 done, 2 done already, 0 another version or time; the time; what was asked for: fields, attributes, attributes by
--       prefix (false: not asked for); unless done, the version, or if it may have been sent before all versions, and the record
--
-- Versions: 'v' has the newest, at most BLOCK of them, the newest first, and one byte, the number of the next of the fields
-- h0 to h7, which take turns to have the BLOCK that were there before. So a change costs the few in 'v', not all.

local call = redis.call
local key, rows, taken = KEYS[1], KEYS[2], KEYS[3]
local expected, new = ARGV[1], ARGV[2]
local from, to, now, life, taken_life, purges, frees, again, wanted, wanted_rows, prefixes, deletes, puts, row_deletes, row_puts, channels =
    struct.unpack('>dddddBBBI4I4I4I4I4I4I4I4', ARGV[3])

-- The lists follow one another; each is read in its turn, in portions that fit the stack, of an even number.
local PORTION = 1000
local BLOCK, BLOCKS = 16, { 'h0', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7' }
local position = 3
local function each_portion(command, at, count, receive)
    local first, last = position + 1, position + count
    position = last
    for start = first, last, PORTION do
        local answer = call(command, at, unpack(ARGV, start, math.min(start + PORTION - 1, last)))
        if receive then
            receive(answer, start - first)
        end
    end
end
local function read(at, count)
    if count == 0 then
        return false
    end
    local values = {}
    each_portion('HMGET', at, count, function(answer, before)
        for i, value in ipairs(answer) do
            values[before + i] = value
        end
    end)
    return values
end
local function listing(prefix)
    local below = {}
    for _, name in ipairs(call('HKEYS', rows)) do
        if string.sub(name, 1, #prefix) == prefix then
            below[#below + 1] = name
            below[#below + 1] = call('HGET', rows, name)
        end
    end
    return below
end

if now < 0 then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local versions, values
if wanted > 0 and wanted < PORTION then
    values = call('HMGET', key, 'v', unpack(ARGV, position + 1, position + wanted))
    versions = table.remove(values, 1)
    position = position + wanted
else
    versions = call('HGET', key, 'v')
    values = read(key, wanted)
end
versions = versions or ''
local row_values, row_listings = read(rows, wanted_rows), prefixes > 0 and {}
for i = 1, prefixes do
    row_listings[i] = listing(ARGV[position + i])
end
position = position + prefixes

if string.sub(versions, 1, 8) ~= expected or now < from or now >= to then
    local known = string.sub(versions, 1, 8)
    if again == 1 and new ~= '' then
        known = string.sub(versions, 1, -2)
        for _, block in ipairs(call('HMGET', key, unpack(BLOCKS))) do
            known = known .. (block or '')
        end
        if string.find(known, new, 1, true) then
            local before = taken and call('GET', taken)
            return { 2, now, before and cmsgpack.unpack(before) or values, row_values, row_listings }
        end
    end
    return { 0, now, values, row_values, row_listings, known, call('HGET', key, 'r') }
end

if new ~= '' then
    -- A server without memory refuses a command that may grow, unless the script has written before: so nothing else may come
    -- first in a script that grows, and a deletion comes first in one that frees.
    local deletes_at = position
    local block, filled
    if frees == 1 then
        if deletes == 0 then
            call('HDEL', key, '')
        end
        each_portion('HDEL', key, deletes)
    end
    if purges == 1 then
        local blocks = call('HMGET', key, unpack(BLOCKS))
        call('UNLINK', key, rows)
        for i, block in ipairs(blocks) do
            if block then
                call('HSET', key, BLOCKS[i], block)
            end
        end
    end
    position = deletes_at + deletes
    if versions == '' then
        versions = new .. '\0'
    elseif #versions <= BLOCK * 8 then
        versions = new .. versions
    else
        local turn = string.byte(versions, -1)
        block, filled = BLOCKS[turn + 1], string.sub(versions, 1, -2)
        versions = new .. string.char((turn + 1) % #BLOCKS)
    end
    if puts > 0 and puts < PORTION then
        call('HSET', key, 'v', versions, unpack(ARGV, position + 1, position + puts))
        position = position + puts
    else
        call('HSET', key, 'v', versions)
        each_portion('HSET', key, puts)
    end
    if block then
        call('HSET', key, block, filled)
    end
    if frees == 0 and deletes > 0 then
        local after = position
        position = deletes_at
        each_portion('HDEL', key, deletes)
        position = after
    end
    each_portion('HDEL', rows, row_deletes)
    each_portion('HSET', rows, row_puts)
    if values then
        local complete = true
        for _, value in ipairs(values) do
            complete = complete and value
        end
        if complete then
            call('SET', taken, cmsgpack.pack(values), 'PX', taken_life)
        end
    end
    if life > 0 then
        call('PEXPIRE', key, life)
        call('PEXPIRE', rows, life)
    end
    for i = position + 1, position + channels do
        call('PUBLISH', ARGV[i], '')
    end
end
return { 1, now, values, row_values, row_listings }
