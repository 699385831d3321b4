-- Uses a single-use key.
--
-- KEYS  the set of used keys, by when they are forgotten; what tells that this very call has been here before
-- ARGV  key, milliseconds to remember it, most keys, the time
-- Answer: -1 used now, -2 used before, else how many there are: too many for one more

local now = tonumber(ARGV[4])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local used = redis.call('ZSCORE', KEYS[1], ARGV[1])
if used and tonumber(used) > now then
    return -2 + redis.call('EXISTS', KEYS[2])
end
local count = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%d', now), '+inf')
if count >= tonumber(ARGV[3]) then
    return count
end
redis.call('ZADD', KEYS[1], string.format('%d', now + ARGV[2]), ARGV[1])
redis.call('SET', KEYS[2], '', 'PX', 60000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now))
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIRE', KEYS[1], string.format('%d', math.max(tonumber(last) - now, 1)))
return -1
