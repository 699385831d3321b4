-- Carries out one operation on one session, all or nothing, if the session is still the one the operation was decided on; else
-- answers with the session as it is. It knows no rule of the protocol: what to write was decided by the state machine.
--
-- KEYS  the session's hash, the hash of its attributes, the list of what this operation takes away
-- ARGV  the version the operation was decided on ('' for no session ever), the new version ('' to look only), the first and the
--       last but one millisecond of server time it was decided for, the time ('' for the server's), flags, milliseconds to keep
--       the keys, and the list, the new record ('' to keep the old one); then lists, each with its length before it
-- Answer: 1 done, 2 done already, 0 another version or time; the time; unless done, versions and record; what was asked for

local key, rows, taken = KEYS[1], KEYS[2], KEYS[3]
local expected, new, from, to, clock, flags, life, taken_life, record = unpack(ARGV, 1, 9)

local position = 10
local function list()
    local items = {}
    for i = 1, tonumber(ARGV[position]) do
        items[i] = ARGV[position + i]
    end
    position = position + 1 + #items
    return items
end
local wanted = list() -- fields to answer with
local wanted_rows = list() -- attributes to answer with
local prefixes = list() -- of attributes to answer with
local puts = list() -- fields and values to write
local deletes = list() -- fields to delete
local row_puts = list() -- the same for attributes
local row_deletes = list()
local channels = list() -- to publish to

-- In portions that fit the stack, of an even number.
local PORTION = 1000
local function portions(items, run)
    for first = 1, #items, PORTION do
        run(first, unpack(items, first, math.min(first + PORTION - 1, #items)))
    end
end
local function write(command, at, items)
    portions(items, function(_, ...) redis.call(command, at, ...) end)
end
local function read(at, fields)
    local values = {}
    portions(fields, function(first, ...)
        for i, value in ipairs(redis.call('HMGET', at, ...)) do
            values[first - 1 + i] = value
        end
    end)
    return values
end
local function listings()
    local found = {}
    for i, prefix in ipairs(prefixes) do
        local below = {}
        for _, name in ipairs(redis.call('HKEYS', rows)) do
            if string.sub(name, 1, #prefix) == prefix then
                below[#below + 1] = name
                below[#below + 1] = redis.call('HGET', rows, name)
            end
        end
        found[i] = below
    end
    return found
end
local function has(flag)
    return string.find(flags, flag, 1, true)
end

local now = tonumber(clock)
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local versions = redis.call('HGET', key, 'v') or ''
local values = read(key, wanted)
local row_values, row_listings = read(rows, wanted_rows), listings()

if string.sub(versions, 1, 8) ~= expected or now < tonumber(from) or now >= tonumber(to) then
    if new ~= '' and string.find(versions, new, 1, true) then
        if redis.call('EXISTS', taken) == 1 then
            values = redis.call('LRANGE', taken, 0, -1)
        end
        return { 2, now, '', false, values, row_values, row_listings }
    end
    return { 0, now, versions, redis.call('HGET', key, 'r'), values, row_values, row_listings }
end

if new ~= '' then
    -- A server without memory refuses a command that may grow, unless the script has written before: so nothing else may come
    -- first in a script that grows, and this comes first in one that frees.
    if has('f') then
        redis.call('HDEL', key, '')
    end
    if has('p') then
        redis.call('UNLINK', key, rows)
    end
    redis.call('HSET', key, 'v', new .. string.sub(versions, 1, 127 * 8))
    if record ~= '' then
        redis.call('HSET', key, 'r', record)
    end
    write('HDEL', key, deletes)
    write('HSET', key, puts)
    write('HDEL', rows, row_deletes)
    write('HSET', rows, row_puts)
    if #values > 0 then
        local complete = true
        for _, value in ipairs(values) do
            complete = complete and value
        end
        if complete then
            write('RPUSH', taken, values)
            redis.call('PEXPIRE', taken, taken_life)
        end
    end
    redis.call('PEXPIRE', key, life)
    redis.call('PEXPIRE', rows, life)
    for _, channel in ipairs(channels) do
        redis.call('PUBLISH', channel, '')
    end
end
return { 1, now, '', false, values, row_values, row_listings }
