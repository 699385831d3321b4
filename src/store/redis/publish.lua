-- Appends a message to a topic and trims it.
--
-- KEYS  the topic's stream, its head (n: newest number, f: oldest number, b: bytes, t: time of the newest); what tells that
--       this very call has been here before
-- ARGV  message, most messages, most bytes, milliseconds to keep it, channel, '1' if it may be a new topic, the time
-- Answer: the message's number, 0 when the topic would be new and may not
--
-- All or nothing, as in session.lua: the right to run every command is asked for before the first that changes anything, which
-- is the one that a full server refuses.

local call, stream, head, before = redis.call, unpack(KEYS)
local message, most, most_bytes, life, channel, may_begin, clock = unpack(ARGV)
most, most_bytes = tonumber(most), tonumber(most_bytes)
for _, needed in ipairs(redis.acl_check_cmd and {
    { 'XADD', stream, '1-0', 'm', '' }, { 'XRANGE', stream, '-', '+' }, { 'XTRIM', stream, 'MINID', '1-0' },
    { 'HSET', head, 'n', '1' }, { 'SET', before, '' }, { 'PEXPIRE', head, life }, { 'PEXPIRE', stream, life },
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
number = (tonumber(known[1]) or 0) + 1
local first, bytes = tonumber(known[2]) or 1, (tonumber(known[3]) or 0) + #message
call('XADD', stream, string.format('%d-0', number), 'm', message)

-- The oldest go, looked at in portions that grow: as many as have to go, not all there are.
local function is_long()
    return first < number and (number - first + 1 > most or bytes > most_bytes)
end
local oldest, portion = first, 1
while is_long() do
    local entries = call('XRANGE', stream, string.format('%d-0', first), string.format('%d-0', number - 1), 'COUNT', portion)
    if #entries == 0 then
        first, bytes = number, #message
    end
    for _, entry in ipairs(entries) do
        if is_long() then
            bytes = bytes - #entry[2][2]
            first = tonumber(string.match(entry[1], '%d+')) + 1
        end
    end
    portion = math.min(portion * 2, 32)
end
if first > oldest then
    call('XTRIM', stream, 'MINID', string.format('%d-0', first))
end
call('HSET', head, 'n', string.format('%d', number), 'f', string.format('%d', first), 'b', string.format('%d', bytes),
    't', string.format('%d', now))
call('SET', before, string.format('%d', number), 'PX', 60000)
call('PEXPIRE', head, life)
call('PEXPIRE', stream, life)
redis.pcall('PUBLISH', channel, '')
return number
