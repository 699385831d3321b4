-- Shows what a session's keys hold at one moment.
--
-- KEYS  the session's hash, the hash of its attributes
-- Answer: of each hash its fields, each followed by the length of its value; the record

local function lengths(key)
    local found = redis.call('HKEYS', key)
    for i = #found, 1, -1 do
        local name = found[i]
        found[2 * i - 1], found[2 * i] = name, redis.call('HSTRLEN', key, name)
    end
    return found
end

-- Attributes are many and short: to read them all takes less time than to ask for the length of each.
local rows = redis.call('HGETALL', KEYS[2])
for i = 2, #rows, 2 do
    rows[i] = #rows[i]
end
return { lengths(KEYS[1]), rows, redis.call('HGET', KEYS[1], 'r') }
