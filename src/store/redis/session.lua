-- Carries out one operation on one session, all or nothing, if the session is still the one the operation was decided on; else
-- answers with the session as it is. It knows no rule of the protocol: what to write was decided by the state machine.
--
-- KEYS  the session's hash; if there is more: the hash of its attributes; if it keeps: the hash of what was taken away
-- ARGV  the version the operation was decided on ('' for no session ever), the new version ('' to look only), the head; if
--       there is more: the second head; if it keeps: the caller, whose field remembers what it took away; the items of the lists
-- Head  the first and the last but one millisecond of server time it was decided for, the time (negative for the server's), three
--       times 1 or 0: it only frees, it keeps, there is more; milliseconds to keep the hash of what was taken away; the lengths of four
--       lists: fields to read ('v' and payloads), fields to delete, fields and values to write ('v' with a place for its value
--       and so on), channels to publish to
-- Second head  milliseconds to keep the keys from now on (0: as they are kept already), two times 1 or 0: everything goes first,
--       it may have been sent before; which attributes to list (0: none, 1: the names of all, 2: all with their values); the
--       lengths of three more lists: attributes to read, attributes to delete, attributes and values to write
-- Answer: done, and nothing but payloads was asked for: the time, or a list of the time and the payloads. Else a list: first a
--       list of 1 for done, 2 for done already, 0 for another version or time, and the time; payloads, attributes, the list of
--       attributes (false: not asked for); unless done, the version, or if it may have been sent before all versions, and the
--       record
--
-- Time: the script takes each item of its lists once, and lists the attributes once. Whoever asks picks what lies below a key.
--
-- All or nothing: every command that the server may refuse is tried before the first one that changes anything. The first
-- change may be refused itself; the right to run the others is asked for (since Redis 7). A ring that may not be published is
-- left out: who waits looks each second.
--
-- Versions: 'v' has the newest, at most BLOCK of them, the newest first, and one byte, the number of the next of the fields
-- h0 to h7, which take turns to have the BLOCK that were there before. So a change costs the few in 'v', not all.

local call, key, expected, new = redis.call, KEYS[1], ARGV[1], ARGV[2]
local from, to, now, frees, keeps, more, kept_for, wanted, deletes, puts, channels = struct.unpack('>dddBBBI4I4I4I4I4', ARGV[3])
local rows, life, purges, again, listing, wanted_rows, row_deletes, row_puts
local position = 3
if more == 1 then
    rows, position = KEYS[2], 4
    life, purges, again, listing, wanted_rows, row_deletes, row_puts = struct.unpack('>dBBBI4I4I4', ARGV[4])
end
local kept, caller
if keeps == 1 then
    position = position + 1
    kept, caller = KEYS[#KEYS], ARGV[position]
end

-- The lists follow one another. Gives the next `count` items to a command, in portions that fit the stack, of an even number.
local PORTION, BLOCK = 1000, 16
local function each(command, at, count)
    local first = position + 1
    position = position + count
    if count <= PORTION then
        return count > 0 and call(command, at, unpack(ARGV, first, position))
    end
    local all = {}
    for start = first, position, PORTION do
        local answer = call(command, at, unpack(ARGV, start, math.min(start + PORTION - 1, position)))
        for _, value in ipairs(type(answer) == 'table' and answer or {}) do
            all[#all + 1] = value
        end
    end
    return all
end

if now < 0 then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local values = each('HMGET', key, wanted)
local versions = values[1] or ''
local row_values, row_listing
if more == 1 then
    local after = position
    position = position + deletes + puts + channels
    row_values = each('HMGET', rows, wanted_rows)
    row_listing = listing > 0 and call(listing == 1 and 'HKEYS' or 'HGETALL', rows)
    position = after
end
local function general(verdict, newest, record)
    table.remove(values, 1)
    return { { verdict, now }, #values > 0 and values, row_values or false, row_listing or false, newest, record }
end

if string.sub(versions, 1, 8) ~= expected or now < from or now >= to then
    local known = string.sub(versions, 1, 8)
    if again == 1 and new ~= '' then
        known = string.sub(versions, 1, -2)
        for _, block in ipairs(call('HMGET', key, 'h0', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7')) do
            known = known .. (block or '')
        end
        if string.find(known, new, 1, true) then
            local before = keeps == 1 and call('HGET', kept, caller)
            if before and string.sub(before, 1, 8) == new then
                before = string.sub(before, 9)
                values = wanted == 2 and { before } or cmsgpack.unpack(before)
                table.insert(values, 1, false)
            end
            return general(2)
        end
    end
    return general(0, known, call('HGET', key, 'r'))
end
if new == '' then
    return general(1)
end

-- What is taken away, for whoever sends this again.
local taken
if keeps == 1 then
    local texts, count = {}, 0
    for i = 2, wanted do
        if values[i] then
            count = count + 1
            texts[count] = values[i]
        end
    end
    if count == wanted - 1 then
        taken = new .. (count == 1 and texts[1] or cmsgpack.pack(texts))
    end
end

local may, refused = redis.acl_check_cmd, nil
local function need(command, ...)
    if may and not refused and not may(command, ...) then
        refused = command
    end
end
if deletes > 0 then
    need('HDEL', key, '')
end
if taken then
    need('HSET', kept, caller, '')
    need('PEXPIRE', kept, 1)
end
if more == 1 then
    if purges == 1 then
        need('UNLINK', key, rows)
        need('HSET', key, 'v', '')
    end
    if life > 0 then
        need('PEXPIRE', key, 1)
        need('PEXPIRE', rows, 1)
    end
    if row_deletes > 0 then
        need('HDEL', rows, '')
    end
    if row_puts > 0 then
        need('HSET', rows, '', '')
    end
end
if refused then
    return redis.error_reply('NOPERM this user may not run ' .. refused .. ' on the keys of this session')
end

-- A server without memory refuses a command that may grow, unless the script has written before: so nothing else may come
-- first in a script that grows, and in one that frees a deletion does, of nothing.
if frees == 1 then
    call('HDEL', key, '')
end
if purges == 1 then
    local names = { 'h0', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7' }
    local blocks = call('HMGET', key, unpack(names))
    call('UNLINK', key, rows)
    for i, block in ipairs(blocks) do
        if block then
            call('HSET', key, names[i], block)
        end
    end
end
local deletes_at = position
position = position + deletes
local block, filled
if versions == '' then
    versions = new .. '\0'
elseif #versions <= BLOCK * 8 then
    versions = new .. versions
else
    local turn = string.byte(versions, -1)
    block, filled = 'h' .. turn, string.sub(versions, 1, -2)
    versions = new .. string.char((turn + 1) % 8)
end
ARGV[position + 2] = versions
each('HSET', key, puts)
if block then
    call('HSET', key, block, filled)
end
local channels_at = position
position = deletes_at
each('HDEL', key, deletes)
for i = channels_at + 1, channels_at + channels do
    redis.pcall('PUBLISH', ARGV[i], '')
end
if taken and call('HSET', kept, caller, taken) == 1 then
    call('PEXPIRE', kept, kept_for)
end
if more == 1 then
    position = channels_at + channels + wanted_rows
    each('HDEL', rows, row_deletes)
    each('HSET', rows, row_puts)
    if life > 0 then
        call('PEXPIRE', key, life)
        call('PEXPIRE', rows, life)
    end
    return general(1)
end
if wanted == 1 then
    return now
end
values[1] = now
return values
