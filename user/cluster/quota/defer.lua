-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- defer.lua - requests for later (on_limit: defer); defer_store.h describes them. defer_store.c puts it after
-- charge.lua, as a function charge(KEYS, ARGV): so a release and its charge are one step. While `as_of` is set,
-- that function takes it for the time.
--
-- Commands, which an ACL has to allow beside those of charge.lua:
--
--     EXISTS HGET HLEN ZCARD ZRANK XLEN XADD XRANGE XDEL XACK XPENDING XGROUP XINFO INFO
--
-- ARGV: a verb, then for all but `charge` the prefix of the queue's keys. No KEYS, but of `charge`: one server
-- has all keys.
--
--     charge COUNT (key cost)... ARGV...     charge.lua; buckets in which deferred requests wait are over
--     add BASE bucket ticket reference max ttl  keys... args...     (as "COUNT keys... args...")
--     poll BASE max ttl deliveries retry aof     releases what fits, removes what is done or dead
--     look BASE ticket ttl, cancel BASE ticket
--
-- Times are us. Keys below BASE:
--
--     queues      sorted set: the queue of each bucket, by the time of its next try
--     tickets     hash: a waiting ticket's request as JSON, or the id of its entry in `released`
--     released    stream, read by the consumer group `workers`; dead: stream of those given up
--     state       hash: counters; s the last number of a ticket, w where sweep() goes on
--     e:TICKET    hash: how a released one ended, until ttl is over
--
-- A queue is the sorted set BUCKETq of its tickets, by number.

local verb, base = ARGV[1], ARGV[2]
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local LATE, SWEEP = 50000, 200
local tries = 100		-- of a poll: some ms of Redis

-- A bucket with a queue is over for everybody else: no request overtakes. Its state is returned all the same.
if verb == 'charge' then
	local count = ARGV[2] + 0
	local args, ahead = { unpack(ARGV, 3 + 2 * count) }, {}
	for i = 1, count do
		local at = ARGV[2 + 2 * i] + 0
		ahead[i] = call('ZCARD', KEYS[ARGV[1 + 2 * i] + 0] .. 'q')
		-- charge.lua refuses what is above the capacity, two arguments before the cost.
		if ahead[i] > 0 and args[at] + 0 > 0 then args[at] = string.format('%.0f', args[at - 2] + 1) end
	end
	local reply = charge(KEYS, args)
	if reply.err then return reply end
	for i = 1, count do reply[#reply + 1] = ahead[i] end
	return reply
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local tickets, queues, released = base .. 'tickets', base .. 'queues', base .. 'released'
local dead, state = base .. 'dead', base .. 'state'

local function count(what) call('HINCRBY', state, what, 1) end

local function open_group()
	if call('EXISTS', released) == 0 or #call('XINFO', 'GROUPS', released) == 0 then
		redis.pcall('XGROUP', 'CREATE', released, 'workers', '0', 'MKSTREAM')
	end
end

local function ended(ticket, how, ttl)
	local key = base .. 'e:' .. ticket
	call('HDEL', tickets, ticket)
	call('HSET', key, 's', how)
	call('PEXPIREAT', key, floor((now + ttl) / 1000))
	count(how)
end

local function bury(ticket, reference, reason, deliveries, most, ttl)
	call('XADD', dead, 'MAXLEN', most, '*', 'ticket', ticket, 'reference', reference, 'reason', reason,
		'deliveries', deliveries)
	ended(ticket, 'dead', ttl)
end

if verb == 'add' then
	local bucket, ticket, most, ttl = ARGV[3], ARGV[4], ARGV[6] + 0, ARGV[7] + 0
	local keys = ARGV[8] + 0
	local queue = bucket .. 'q'
	if call('HLEN', tickets) >= most then
		count('full')
		return { 'full' }
	end
	local number = call('HINCRBY', state, 's', 1)
	call('HSET', tickets, ticket, cjson.encode({ q = queue, r = ARGV[5], d = string.format('%.0f', now + ttl),
		k = { unpack(ARGV, 9, 8 + keys) }, a = { unpack(ARGV, 9 + keys) } }))
	call('ZADD', queue, number, ticket)
	if call('ZCARD', queue) == 1 then call('ZADD', queues, now, queue) end
	count('deferred')
	return { 'waiting', call('ZRANK', queue, ticket) + 1 }
end

local function parse(ticket)
	local text = call('HGET', tickets, ticket)
	return text and string.sub(text, 1, 1) == '{' and cjson.decode(text) or nil, text
end

local function leave(queue, ticket)
	call('ZREM', queue, ticket)
	if call('EXISTS', queue) == 0 then call('ZREM', queues, queue) end
end

-- An entry's id of which a worker has acknowledged nothing yet: its deliveries, else nil.
local function pending(id)
	local p = call('XPENDING', released, 'workers', id, id, 1)
	if p[1] then return p[1][4], p[1][3] end
end

local function last_delivered()
	for _, group in ipairs(call('XINFO', 'GROUPS', released)) do
		local name, last
		for i = 1, #group, 2 do
			if group[i] == 'name' then name = group[i + 1] end
			if group[i] == 'last-delivered-id' then last = group[i + 1] end
		end
		if name == 'workers' then return last end
	end
	return '0-0'
end

local function parts(id)
	local ms, number = string.match(id, '^(%d+)-(%d+)$')
	return (ms or 0) + 0, (number or 0) + 0
end

local function is_delivered(id, last)
	local ms, number = parts(id)
	local last_ms, last_number = parts(last)
	return ms < last_ms or (ms == last_ms and number <= last_number)
end

if verb == 'look' then
	local ticket = ARGV[3]
	local request, text = parse(ticket)
	if request then
		local rank = call('ZRANK', request.q, ticket)
		return { 'waiting', rank and rank + 1 or 1 }
	end
	if not text then return { call('HGET', base .. 'e:' .. ticket, 's') or 'none' } end
	open_group()
	local deliveries = pending(text)
	if not deliveries and is_delivered(text, last_delivered()) then return { 'done' } end
	return { 'released', deliveries or 0 }
end

if verb == 'cancel' then
	local ticket = ARGV[3]
	local request, text = parse(ticket)
	if not request then return { text and 'released' or 'none' } end
	leave(request.q, ticket)
	call('HDEL', tickets, ticket)
	count('cancelled')
	return { 'cancelled' }
end

-- poll
local most, ttl, deliveries, retry = ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0

-- How long after `at` the request may fit, by charge.lua's reply: exact for buckets, aligned windows and logs. Else
-- the time of one request.
local function wait_of(args, reply, at)
	local i, r, wait = 3, 3, 1000
	while args[i] do
		local op, cap, per, cost, hold = args[i] + 0, args[i + 1] + 0, args[i + 2] + 0, args[i + 3] + 0,
			args[i + 4] + 0
		local kind, flags = floor(op / 4) % 8, reply[r]
		if flags % 2 == 1 then
			local own
			if kind == 0 then
				own = math.ceil((reply[r + 1] - (cap - hold - cost) * per) / 16000)
			elseif kind == 1 and op < 64 then
				own = (reply[r + 3] + 1) * per - at
			elseif kind == 3 and flags >= 4 and reply[r + 8] > 0 then
				own = reply[r + 8] - at
			else
				own = floor(per / max(cap, 1))
			end
			wait = max(wait, own)
		end
		i = i + 5
		if floor(op / 64) % 2 == 1 then i = i + 1 end
		r = r + (flags >= 4 and 9 or 5)
	end
	return wait
end

-- Releases the first of a queue as of the time at which it was due, at most LATE ago: a poll comes later than
-- that, and a bucket that counted from there would lose the time at each release.
local function release(queue, due)
	local at = max(due, now - LATE)
	while tries > 0 do
		tries = tries - 1
		local ticket = call('ZRANGE', queue, 0, 0)[1]
		local request = ticket and parse(ticket)
		if not request then
			if ticket then call('ZREM', queue, ticket) end
			if call('EXISTS', queue) == 0 then return call('ZREM', queues, queue) end
		elseif request.d + 0 <= now then
			leave(queue, ticket)
			bury(ticket, request.r, 'ttl', 0, most, ttl)
		else
			as_of = at
			local reply = charge(request.k, request.a)
			as_of = nil
			if reply.err then
				leave(queue, ticket)
				bury(ticket, request.r, reply.err, 0, most, ttl)
			elseif reply[2] == 1 then
				local id = call('XADD', released, '*', 'ticket', ticket, 'reference', request.r,
					'until', floor(request.d / 1000))
				call('HSET', tickets, ticket, id)
				call('ZREM', queue, ticket)
				count('released')
			else
				at = at + wait_of(request.a, reply, at)
				if at > now then
					call('ZADD', queues, min(at, request.d + 0), queue)
					return
				end
			end
		end
	end
	call('ZADD', queues, at, queue)
end

local function field(list, name)
	for i = 1, #list, 2 do
		if list[i] == name then return list[i + 1] end
	end
	return ''
end

-- Removes entries that a worker has acknowledged, and those given up; some at a time.
local function sweep()
	local last, from = last_delivered(), call('HGET', state, 'w') or '0-0'
	local ms, number = parts(from)
	local list = call('XRANGE', released, string.format('%.0f-%.0f', ms, number + 1), '+', 'COUNT', SWEEP)
	for _, entry in ipairs(list) do
		local id, ticket, reference = entry[1], field(entry[2], 'ticket'), field(entry[2], 'reference')
		local over = (tonumber(field(entry[2], 'until')) or 0) * 1000 <= now
		local given, idle = pending(id)
		if given then
			if idle * 1000 >= retry and (given >= deliveries or over) then
				call('XACK', released, 'workers', id)
				call('XDEL', released, id)
				bury(ticket, reference, given >= deliveries and 'deliveries' or 'ttl', given, most, ttl)
			end
		elseif is_delivered(id, last) then
			call('XDEL', released, id)
			ended(ticket, 'done', ttl)
		elseif over then
			call('XDEL', released, id)
			bury(ticket, reference, 'ttl', 0, most, ttl)
		end
	end
	local on = #list == SWEEP and list[#list][1] or '0-0'
	if on ~= from then call('HSET', state, 'w', on) end
end

open_group()
while tries > 0 do
	local first = call('ZRANGEBYSCORE', queues, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
	if not first[1] then break end
	release(first[1], first[2] + 0)
end
sweep()
local due = call('ZRANGE', queues, 0, 0, 'WITHSCORES')[2]
local reply = { 'ok', due and max(due - now, 0) or -1, max(call('HLEN', tickets) - call('XLEN', released), 0),
	call('XLEN', released), call('XLEN', dead), -1 }
if ARGV[7] == '1' then
	local info = redis.pcall('INFO', 'persistence')
	reply[6] = type(info) == 'string' and (string.match(info, 'aof_enabled:(%d)') or -1) + 0 or -1
end
for _, what in ipairs({ 'deferred', 'full', 'cancelled', 'released', 'done', 'dead' }) do
	reply[#reply + 1] = (call('HGET', state, what) or 0) + 0
end
return reply
