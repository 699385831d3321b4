-- Which rights the user lacks.
--
-- ARGV  a key and a channel of the store
-- Answer: the commands that the user may not run on that key, on that channel, or at all; of what has a key, in a list of its own,
--       how many there are; nothing where the server cannot be asked (before Redis 7)

local may, key, channel = redis.acl_check_cmd, unpack(ARGV)
if not may then
    return false
end
local number, text = '1', 'x'
local of_keys = {
    { 'hset', key, text, text }, { 'hdel', key, text }, { 'hmget', key, text }, { 'hget', key, text }, { 'hkeys', key },
    { 'hgetall', key }, { 'hlen', key }, { 'hstrlen', key, text }, { 'hincrby', key, text, number }, { 'unlink', key },
    { 'pexpire', key, number }, { 'get', key }, { 'set', key, text }, { 'exists', key }, { 'zadd', key, number, text },
    { 'zrem', key, text }, { 'zscore', key, text }, { 'zcard', key }, { 'zcount', key, number, number },
    { 'zrange', key, number, number }, { 'zrangebyscore', key, number, number }, { 'sadd', key, text }, { 'srem', key, text },
    { 'smembers', key }, { 'xadd', key, '1-0', text, text }, { 'xrange', key, '-', '+' }, { 'xtrim', key, 'MINID', '1-0' },
}
local others = {
    { 'publish', channel, text }, { 'subscribe', channel }, { 'time' }, { 'ping' }, { 'evalsha', text, '0' }, { 'info' }, { 'role' },
}
local refused = { {}, {} }
for at, commands in ipairs({ of_keys, others }) do
    for _, command in ipairs(commands) do
        if not may(unpack(command)) then
            table.insert(refused[at], command[1])
        end
    end
end
return { #of_keys, refused[1], refused[2] }
