-- Appends a message to a topic and trims it.
--
-- KEYS  the topic's stream, its head (n: newest number, f: oldest number, b: bytes, t: time of the newest), the lengths of its
--       messages; what tells that this very call has been here before
-- ARGV  message, most messages, most bytes, milliseconds to keep it, channel, '1' if it may be a new topic, the time
-- Answer: the message's number, 0 when the topic would be new and may not
--
-- Time: no message but the new one is read. The lengths are a hash: n, the newest number it knows of, and under each multiple of
-- BLOCK the lengths of the messages from there on, four bytes each. Builds that keep no lengths may publish to the topic too;
-- then n is not the head's, and all messages there are count as equally long, their sum being known.
--
-- All or nothing, as in session.lua: the right to run every command is asked for before the first that changes anything, which
-- is the one that a full server refuses.

local BLOCK = 256

local call, stream, head, lengths, before = redis.call, unpack(KEYS)
local message, most, most_bytes, life, channel, may_begin, clock = unpack(ARGV)
most, most_bytes = tonumber(most), tonumber(most_bytes)
for _, needed in ipairs(redis.acl_check_cmd and {
    { 'XADD', stream, '1-0', 'm', '' }, { 'XTRIM', stream, 'MINID', '1-0' }, { 'HSET', head, 'n', '1' }, { 'HGET', lengths, 'n' },
    { 'HSET', lengths, 'n', '1' }, { 'HDEL', lengths, 'n' }, { 'UNLINK', lengths }, { 'SET', before, '' },
    { 'PEXPIRE', head, life }, { 'PEXPIRE', stream, life }, { 'PEXPIRE', lengths, life },
} or {}) do
    if not redis.acl_check_cmd(unpack(needed)) then
        return redis.error_reply('NOPERM this user may not run ' .. needed[1] .. ' on the keys of this topic')
    end
end
local known = call('HMGET', head, 'n', 'f', 'b')
if may_begin ~= '1' and not known[1] then
    return 0
end
local number = call('GET', before)
if number then
    return tonumber(number)
end
local now = tonumber(clock)
if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local newest, first, bytes = tonumber(known[1]) or 0, tonumber(known[2]) or 1, tonumber(known[3]) or 0
number = newest + 1
call('XADD', stream, string.format('%d-0', number), 'm', message)

local function digits(integer)
    return string.format('%d', integer)
end
local function block_of(of)
    return of - of % BLOCK
end
-- Notes that each of the messages from `from` to `to`, all of one block, has this length.
local function note(from, to, length)
    local block = digits(block_of(from))
    local noted = string.sub(call('HGET', lengths, block) or '', 1, from % BLOCK * 4)
    noted = noted .. string.rep('\0', from % BLOCK * 4 - #noted)
    call('HSET', lengths, block, noted .. string.rep(struct.pack('>I4', length), to - from + 1))
end

if newest > 0 and tonumber(call('HGET', lengths, 'n') or 0) ~= newest then
    call('UNLINK', lengths)
    local average = math.floor(bytes / (newest - first + 1))
    local from = first
    while from <= newest do
        local to = math.min(newest, block_of(from) + BLOCK - 1)
        note(from, to, average)
        from = to + 1
    end
    -- What is left of the sum is nobody's.
    bytes = average * (newest - first + 1)
end
note(number, number, #message)
bytes = bytes + #message

local oldest, block, texts = first, nil, nil
while first < number and (number - first + 1 > most or bytes > most_bytes) do
    if block ~= block_of(first) then
        if block then
            call('HDEL', lengths, digits(block))
        end
        block = block_of(first)
        texts = call('HGET', lengths, digits(block))
    end
    bytes = bytes - struct.unpack('>I4', texts, first % BLOCK * 4 + 1)
    first = first + 1
end
if first > oldest then
    call('XTRIM', stream, 'MINID', string.format('%d-0', first))
end
if block and block ~= block_of(first) then
    call('HDEL', lengths, digits(block))
end
call('HSET', lengths, 'n', digits(number))
call('HSET', head, 'n', digits(number), 'f', digits(first), 'b', digits(bytes), 't', digits(now))
call('SET', before, digits(number), 'PX', 60000)
for _, key in ipairs({ head, stream, lengths }) do
    call('PEXPIRE', key, life)
end
redis.pcall('PUBLISH', channel, '')
return number
