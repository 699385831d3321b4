-- Uses a single-use key.
--
-- KEYS  the set of used keys, by when they are forgotten; what tells that this very call has been here before
-- ARGV  key, milliseconds to remember it, most keys, the time
-- Answer: -1 used now, -2 used before, else how many there are: too many for one more
--
-- All or nothing, as in session.lua: the right to run every command is asked for before the first that changes anything, which
-- is the one that a full server refuses.

-- How many forgotten keys one call removes: more than it adds, and few enough to be quick.
local PORTION = 100

local call, used, before = redis.call, unpack(KEYS)
for _, needed in ipairs(redis.acl_check_cmd and {
    { 'ZADD', used, '0', '' }, { 'SET', before, '' }, { 'ZREM', used, '' }, { 'PEXPIRE', used, '1' },
} or {}) do
    if not redis.acl_check_cmd(unpack(needed)) then
        return redis.error_reply('NOPERM this user may not run ' .. needed[1] .. ' on the single-use keys')
    end
end
local now = tonumber(ARGV[4])
if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local until_then = call('ZSCORE', used, ARGV[1])
if until_then and tonumber(until_then) > now then
    return -2 + call('EXISTS', before)
end
local count = call('ZCOUNT', used, '(' .. string.format('%d', now), '+inf')
if count >= tonumber(ARGV[3]) then
    return count
end
local forgotten = call('ZRANGEBYSCORE', used, '-inf', string.format('%d', now), 'LIMIT', 0, PORTION)
local last = tonumber(call('ZRANGE', used, -1, -1, 'WITHSCORES')[2] or 0)
if #forgotten > 0 and until_then then
    -- The key itself is used again, whenever its turn comes.
    for i = #forgotten, 1, -1 do
        if forgotten[i] == ARGV[1] then
            table.remove(forgotten, i)
        end
    end
end
call('ZADD', used, string.format('%d', now + ARGV[2]), ARGV[1])
call('SET', before, '', 'PX', 60000)
if #forgotten > 0 then
    call('ZREM', used, unpack(forgotten))
end
call('PEXPIRE', used, string.format('%d', math.max(last - now, tonumber(ARGV[2]), 1)))
return -1
