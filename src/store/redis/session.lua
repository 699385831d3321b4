-- Carries out one operation on one session, all or nothing, if the session is still the one the operation was decided on; else
-- answers with the session as it is. It knows no rule of the protocol: what to write was decided by the state machine.
--
-- KEYS  the session's hash, the hash of its attributes, the list of what this operation takes away
-- ARGV  the version the operation was decided on ('' for no session ever), the new version ('' to look only), the first and the
--       last but one millisecond of server time it was decided for, the time ('' for the server's), flags, milliseconds to keep
--       the keys, and the list, the new record ('' to keep the old one), the lengths of eight lists, the lists
-- Answer: 1 done, 2 done already, 0 another version or time; the time; unless done, versions and record; what was asked for

local call = redis.call
local key, rows, taken = KEYS[1], KEYS[2], KEYS[3]
local expected, new, from, to, clock, flags, life, taken_life, record = unpack(ARGV, 1, 9)

-- A list is the place before its first item, and the place of its last.
local position = 17
local function list(number)
    local before = position
    position = before + ARGV[9 + number]
    return before, position
end
local wanted, wanted_end = list(1) -- fields to answer with
local wanted_rows, wanted_rows_end = list(2) -- attributes to answer with
local prefixes, prefixes_end = list(3) -- of attributes to answer with
local puts, puts_end = list(4) -- fields and values to write
local deletes, deletes_end = list(5) -- fields to delete
local row_puts, row_puts_end = list(6) -- the same for attributes
local row_deletes, row_deletes_end = list(7)
local channels, channels_end = list(8) -- to publish to

-- In portions that fit the stack, of an even number.
local PORTION = 1000
local function write(command, at, items, before, last)
    for first = before + 1, last, PORTION do
        call(command, at, unpack(items, first, math.min(first + PORTION - 1, last)))
    end
end
local function read(at, before, last)
    if last - before <= PORTION then
        return before == last and {} or call('HMGET', at, unpack(ARGV, before + 1, last))
    end
    local values = {}
    for first = before + 1, last, PORTION do
        for i, value in ipairs(call('HMGET', at, unpack(ARGV, first, math.min(first + PORTION - 1, last)))) do
            values[first - before - 1 + i] = value
        end
    end
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
local function has(flag)
    return string.find(flags, flag, 1, true)
end

local now = tonumber(clock)
if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local versions = call('HGET', key, 'v') or ''
local values = read(key, wanted, wanted_end)
local row_values, row_listings = read(rows, wanted_rows, wanted_rows_end), {}
for i = prefixes + 1, prefixes_end do
    row_listings[i - prefixes] = listing(ARGV[i])
end

if string.sub(versions, 1, 8) ~= expected or now < tonumber(from) or now >= tonumber(to) then
    if new ~= '' and string.find(versions, new, 1, true) then
        if call('EXISTS', taken) == 1 then
            values = call('LRANGE', taken, 0, -1)
        end
        return { 2, now, '', false, values, row_values, row_listings }
    end
    return { 0, now, versions, call('HGET', key, 'r'), values, row_values, row_listings }
end

if new ~= '' then
    -- A server without memory refuses a command that may grow, unless the script has written before: so nothing else may come
    -- first in a script that grows, and this comes first in one that frees.
    if has('f') then
        call('HDEL', key, '')
    end
    if has('p') then
        call('UNLINK', key, rows)
    end
    versions = new .. string.sub(versions, 1, 127 * 8)
    if record ~= '' then
        call('HSET', key, 'v', versions, 'r', record)
    else
        call('HSET', key, 'v', versions)
    end
    write('HDEL', key, ARGV, deletes, deletes_end)
    write('HSET', key, ARGV, puts, puts_end)
    write('HDEL', rows, ARGV, row_deletes, row_deletes_end)
    write('HSET', rows, ARGV, row_puts, row_puts_end)
    if #values > 0 then
        local complete = true
        for _, value in ipairs(values) do
            complete = complete and value
        end
        if complete then
            write('RPUSH', taken, values, 0, #values)
            call('PEXPIRE', taken, taken_life)
        end
    end
    call('PEXPIRE', key, life)
    if has('a') then
        call('PEXPIRE', rows, life)
    end
    for i = channels + 1, channels_end do
        call('PUBLISH', ARGV[i], '')
    end
end
return { 1, now, '', false, values, row_values, row_listings }
