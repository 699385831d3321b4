-- Appends a message to a topic and trims it.
--
-- KEYS  the topic's stream, its head (n: newest number, f: oldest number, b: bytes, t: time of the newest); what tells that
--       this very call has been here before
-- ARGV  message, most messages, most bytes, milliseconds to keep it, channel, '1' if it may be a new topic, the time
-- Answer: the message's number, 0 when the topic would be new and may not

local stream, head, before = unpack(KEYS)
local message, most, most_bytes, life, channel, may_begin, clock = unpack(ARGV)
if may_begin ~= '1' and redis.call('EXISTS', head) == 0 then
    return 0
end
local number = redis.call('GET', before)
if number then
    return tonumber(number)
end
local now = tonumber(clock)
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
number = redis.call('HINCRBY', head, 'n', 1)
redis.call('SET', before, number, 'PX', 60000)
redis.call('XADD', stream, number .. '-0', 'm', message)
local bytes = redis.call('HINCRBY', head, 'b', #message)
local first = tonumber(redis.call('HGET', head, 'f') or '1')
while first < number and (number - first + 1 > tonumber(most) or bytes > tonumber(most_bytes)) do
    local oldest = redis.call('XRANGE', stream, first .. '-0', first .. '-0')[1]
    if oldest then
        bytes = bytes - #oldest[2][2]
        redis.call('XDEL', stream, oldest[1])
    end
    first = first + 1
end
redis.call('HSET', head, 'f', first, 'b', bytes, 't', string.format('%d', now))
redis.call('PEXPIRE', head, life)
redis.call('PEXPIRE', stream, life)
redis.call('PUBLISH', channel, '')
return number
