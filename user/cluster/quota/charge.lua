-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- charge.lua - every operation on a bucket in Redis; cluster_store.h describes them. tests/lib/cluster_store_model.c
-- is the same in C, and tests/prop/test_cluster_store_script.c compares the two.
--
-- Commands, which an ACL has to allow beside EVALSHA:
--
--     TIME HMGET HGETALL HSET HDEL HINCRBY DEL PEXPIREAT
--     ZADD ZREM ZRANGE ZRANGEBYSCORE             (sliding logs)
--
-- KEYS: the hash of each bucket, followed for a sliding log by the sorted set of its requests; all
-- in one hash slot. ARGV: this node's field names for `own` and for its lease, then for each bucket
--
--     op capacity per cost hold        op: kind + 4 x state, + 64 if this follows:
--     edge                             ... + 512 if these follow (a fixed window of a calendar):
--     number begin end                 ... + 128 if these follow:
--     refused since                    ... (a refusal counts) + 32 if these follow:
--     window want returned spent lease least most        op + 256: a sliding window rounds up
--
-- kind: 0 CHARGE, 1 FORCE, 2 REFUND; state (enum state_kind of user/limiter/algorithm.h): 0 debt of
-- a bucket, 1 fixed window, 2 sliding window, 3 log, 4 window that begins with its first request.
-- per: a bucket's ticks for a request, else the period in us; most: its largest debt; edge: what
-- each edge of an interval bucket (a fixed window whose count does not start again) refills; the us
-- of a bucket of window counters (a log whose times are the begins of buckets); for how long an empty
-- bucket is kept, us; after how many us a window that begins with its first request admits no more.
-- number begin end: the window of a calendar that the node takes for the current one, us. A reply of the
-- time alone: now is in none of it, the one before and the one after, so nothing was done. The reply:
-- the time, whether all fit, then for each bucket flags (1 over, 2 late, 4 more), used, before,
-- window, own, and with flag 4: held, granted, excess, fits.
--
-- The script reads all buckets, decides, then writes. Any error occurs before the first write.
--
-- Fields of a hash. Buckets: d debt, t its time, r its tau; after a refund b its time, e the time
-- at which the bucket would have been empty. Windows: w number or begin, n count, p count of the
-- previous one, q its begin (first-request). Logs: n count, s number of the last member. All: each
-- node's own count. With leases: h units held, k number of leases, u first end, v last end, and
-- for each lease "granted until window". The members of a log are "number node count own" with the
-- time as score; the number makes each unique.

local call = redis.call
local own_name, lease_name = ARGV[1], ARGV[2]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- A tick is a 16000th of a us; doubles represent each integer below EXACT (2^53).
-- APART: a window that is over for one node may go on for another, whose zone is behind: at most 26 h.
local APART, GRACE, TICKS, LOOK, EXACT = 97200000000, 2000000, 16000, 512, 9007199254740992
local floor, min, max = math.floor, math.min, math.max
local argc = #ARGV

-- Nearly all commands are CHARGE of buckets and aligned windows without leases. This does the same
-- as the code below, without a table for each bucket and before any other function is created: half
-- the time. In any other case it returns nil before the first write, and the code below runs.
local function charge_directly()
	local reply, charged, level, since, fresh = { now, 1 }, {}, {}, {}, {}
	local i, b, r = 3, 0, 3
	while i <= argc do
		-- A bucket 0, a fixed window 4, a sliding one 8.
		local op, cap, per, cost = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0
		local room, fits = cap, false
		if op % 4 ~= 0 or op > 8 then return end
		if cost > 0 then room = cap - ARGV[i + 4] end
		b = b + 1
		if op < 4 then
			local v = call('HMGET', KEYS[b], 'd', 't', 'r', 'h', 'b')
			local d, t, tau = (v[1] or 0) + 0, (v[2] or 0) + 0, cap * per
			if v[4] or v[5] or t > now or (v[3] or tau) + 0 ~= tau then return end
			d = d - (now - t) * TICKS
			if d > tau then return end
			if d < 0 then d = 0 end
			fits = d <= (room - cost) * per
			level[b], charged[b] = d, cost * per
			reply[r + 2], reply[r + 3], reply[r + 4] = 0, 0, 0
		else
			local v = call('HMGET', KEYS[b], 'w', 'n', own_name, 'p', 'h')
			local w, n, own, p = (v[1] or 0) + 0, (v[2] or 0) + 0, (v[3] or 0) + 0, (v[4] or 0) + 0
			local number, all = floor(now / per), n
			if v[5] or w > number then return end
			if w < number then
				p = w + 1 == number and n or 0
				n, own, all = 0, 0, 0
				fresh[b] = v[1] and 2 or 1
			end
			if op == 8 then
				local left = per - now % per
				if p > 2 * cap or p * left >= EXACT then return end
				all = n + floor(p * left / per)
			end
			if all > cap then return end
			fits = all + cost <= room
			level[b], charged[b] = n, cost
			reply[r + 2], reply[r + 3], reply[r + 4] = p, number, own
		end
		reply[r], reply[r + 1] = fits and 0 or 1, level[b]
		if not fits then reply[2] = 0 end
		i, r = i + 5, r + 5
	end
	if i ~= argc + 1 or b ~= #KEYS then return end
	if reply[2] == 0 then return reply end
	r = 3
	for b = 1, #KEYS do
		local key, before, more = KEYS[b], level[b], charged[b]
		local total, op, per = before + more, ARGV[5 * b - 2] + 0, ARGV[5 * b] + 0
		if more == 0 then
			-- Only read.
		elseif op < 4 then
			call('HSET', key, 'd', total, 't', now, 'r', ARGV[5 * b - 1] * per)
			call('PEXPIREAT', key, floor((now + floor(total / TICKS)) / 1000) + 1)
		else
			local w, own = reply[r + 3], reply[r + 4] + more
			reply[r + 4] = own
			if fresh[b] then
				if fresh[b] == 2 then call('DEL', key) end
				call('HSET', key, 'w', w, 'n', total, 'p', reply[r + 2], own_name, own)
			else
				call('HSET', key, 'n', total, own_name, own)
			end
			if fresh[b] or before < 2 then
				local til = (w + 1) * per + GRACE
				if op == 8 and total > 1 then til = (w + 2) * per end
				call('PEXPIREAT', key, floor(til / 1000) + 1)
			end
		end
		reply[r + 1] = total
		r = r + 5
	end
	return reply
end

local fast = charge_directly()
if fast then return fast end

-- From here on `s` is the present state of a bucket: the fields of its hash, by the same letters,
-- the arguments (cost, hold, window, want ...), and
--
--     bucket fixed sliding first log   the algorithm; log is the key of its members
--     n0 p0       n and p as read
--     at empty    buckets: the time of `d`; the time of being empty by the hash
--     left        aligned windows: rest of this window, us
--     fresh       no hash exists; rolled: its window is over; expired: members that are too old
--     begin       log: the time of a new member
--     calendar begins ends   fixed window: a number, and where this window is
--     add out others   members to write and to remove (also by name); changes of other nodes' own counts
--     lease       this node's; leased: to be written; swept: all were read; ended: fields to remove
--     late dropped late_excess   results of force() and refund()
--     dirty       to be written

-- previous x left / period, rounded down or up; exact below 2^53, else more
local function weighted(previous, left, per, up)
	while previous * left >= EXACT do
		left, per = floor((left + 1) / 2), floor(per / 2)
	end
	return (up and math.ceil or floor)(previous * left / per)
end

local function used(s)
	if s.bucket then return s.d end
	if s.log then return s.n + s.h end
	if s.sliding then return s.n + weighted(min(s.p, 2 * s.cap), s.left, s.per, s.up) end
	return s.n
end

local function is_previous(s, window)
	if s.first then return window > 0 and window == s.q end
	return window + 1 == s.w
end

local function is_over(s, window)
	if s.first then return window > 0 and window + s.per <= now end
	return window > 0 and window < s.w and not s.edge
end

local function is_current(s, lease)
	return s.bucket or s.log or lease.w == s.w
end

local function parse(text)
	local g, til, w = string.match(text, '^(%d+) (%d+) (%d+)$')
	if g then return { g = g + 0, til = til + 0, w = w + 0 } end
end

local function log_parse(member)
	local node, c, o = string.match(member, '^%d+ (%S+) (%d+) (%d+)$')
	return node, (c or 0) + 0, (o or 0) + 0
end

-- Reads the leases: only for a bucket that has some.
local function open_lease(s)
	local v = call('HMGET', s.key, 'u', 'v', 'k', lease_name)
	s.u, s.v, s.k, s.lease = v[1], v[2], (v[3] or 0) + 0, v[4] and parse(v[4]) or nil
end

-- Reads a bucket and drains it up to now.
local function open_bucket(s)
	local v = call('HMGET', s.key, 'd', 't', 'r', 'h', 'b', 'e')
	local d, t, tau = (v[1] or 0) + 0, (v[2] or 0) + 0, s.cap * s.per
	local elapsed = max(now - t, 0)
	s.at = max(now, t)
	if s.at > now and s.at - now > tau / TICKS then s.at = now end
	d = max(d - elapsed * TICKS, 0)
	local r = (v[3] or tau) + 0
	if r ~= tau then d = math.ceil(d * (tau / r)) end
	s.d, s.tau, s.h, s.empty = d, tau, v[4], t + floor((v[1] or 0) / TICKS)
	s.own, s.e = (v[5] or 0) + 0, (v[6] or 0) + 0
	if s.e <= now then s.own, s.e, s.unmark = 0, 0, v[5] end
end

local function open_window(s)
	local v = call('HMGET', s.key, 'w', 'n', own_name, 'p', 'h', 'q')
	local w, n, per, left = (v[1] or 0) + 0, (v[2] or 0) + 0, s.per, 0
	s.w, s.n, s.own, s.p, s.q = w, n, (v[3] or 0) + 0, (v[4] or 0) + 0, (v[6] or 0) + 0
	s.fresh, s.h = not v[1], v[5]
	if s.first then
		if w == 0 or (now < w + per and w <= now + per) then return end
		s.p, s.q, s.w = n, w, 0
	else
		local number = floor(now / per)
		s.left = per - now % per
		if s.calendar then number = s.calendar + (now < s.begins and -1 or now >= s.ends and 1 or 0) end
		if w == number then return end
		if w == number + 1 then
			s.left = per
			return
		end
		s.p, s.q, s.w = w + 1 == number and n or 0, 0, number
		if s.edge and w < number then left = max(n - s.edge * (number - w), 0) end
	end
	s.n, s.own, s.rolled = left, 0, true
end

-- Restores a lost hash of a log from its members.
local function rebuild(s)
	s.n, s.own, s.others = 0, 0, {}
	for _, member in ipairs(call('ZRANGE', s.log, 0, -1)) do
		local node, c, o = log_parse(member)
		s.n, s.s = s.n + c, max(s.s, string.match(member, '^%d+') + 0)
		if node == own_name then s.own = s.own + o else s.others[node] = (s.others[node] or 0) + o end
	end
	s.dirty = s.s > 0
end

-- So many of a log's requests that a node brought are gone.
local function node_less(s, node, count)
	if node == own_name then
		s.own = s.own - count
	else
		s.others = s.others or {}
		s.others[node] = (s.others[node] or 0) - count
	end
end

local function open_log(s)
	local v = call('HMGET', s.key, 'n', 's', own_name, 'h')
	s.n, s.s, s.own, s.h = (v[1] or 0) + 0, (v[2] or 0) + 0, (v[3] or 0) + 0, v[4]
	if not v[1] then rebuild(s) end
	s.expired = call('ZRANGEBYSCORE', s.log, '-inf', now - s.per)
	for _, member in ipairs(s.expired) do
		local node, c, o = log_parse(member)
		s.n, s.dirty = s.n - c, true
		node_less(s, node, o)
	end
	s.add, s.out, s.begin = {}, {}, s.edge and now - now % s.edge or now
end

local function log_out(s, member)
	s.out[#s.out + 1], s.out[member] = member, true
end

-- A node has one member for each bucket of window counters.
local function log_add(s, count)
	local c, o = count, count
	if s.edge then
		for i = #s.add, 1, -1 do
			local new = s.add[i]
			if new[1] + 0 == s.begin and new[3] == own_name then
				c, o = c + new[4], o + new[5]
				table.remove(s.add, i)
			end
		end
		for _, member in ipairs(call('ZRANGEBYSCORE', s.log, s.begin, s.begin)) do
			local node, before, own = log_parse(member)
			if node == own_name and not s.out[member] then
				log_out(s, member)
				c, o = c + before, o + own
			end
		end
	end
	s.s = s.s + 1
	s.n, s.own = s.n + count, s.own + count
	s.add[#s.add + 1] = { s.begin, s.s, own_name, c, o }
end

-- A full log keeps its newest requests.
local function log_fill(s, cost, since)
	local new, k = s.begin, #s.expired
	s.begin = s.edge and since - since % s.edge or since
	cost = min(cost, max(s.cap - s.h, 0))
	local need = max(s.n + s.h + cost - s.cap, 0)
	while need > 0 do
		local list = call('ZRANGE', s.log, k, k + 63, 'WITHSCORES')
		for i = 1, #list, 2 do
			if need <= 0 or list[i + 1] + 0 >= s.begin then break end
			if not s.out[list[i]] then
				local node, c, o = log_parse(list[i])
				local some = min(c, need)
				local less = c > some and min(some, o) or o
				s.n, need = s.n - some, need - some
				log_out(s, list[i])
				node_less(s, node, less)
				if c > some then
					s.add[#s.add + 1] = { list[i + 1], string.match(list[i], '^%d+') + 0, node,
						c - some, o - less }
				end
			end
		end
		if #list < 128 or list[128] + 0 >= s.begin then break end
		k = k + 64
	end
	if cost > need then log_add(s, cost - need) end
	s.begin = new
end

-- Requests that a limit refused at that time and that count: up to the limit, as it was then.
local function fill(s, cost, since)
	since = min(since, now)
	if s.log then
		if since > now - s.per + (s.edge or 0) then
			s.dirty = true
			log_fill(s, cost, since)
		end
	elseif s.bucket then
		local ago = now - since
		if ago >= s.tau / TICKS or s.d >= s.tau then return end
		local past = ago * TICKS
		local level = s.d > 0 and s.d + past or min(max(s.empty - since, 0) * TICKS, past)
		local d = s.d + min(min(cost, s.cap) * s.per, max(s.tau - level, 0))
		if s.d == 0 then d = max(d + level - past, 0) end
		s.d, s.dirty = d, true
	elseif s.sliding then
		local number = floor(since / s.per)
		if number == s.w then
			local some = min(cost, max(s.cap - s.n, 0))
			s.n, s.own, s.dirty = s.n + some, s.own + some, true
		elseif number + 1 == s.w then
			s.p, s.dirty = s.p + min(cost, max(s.cap - s.p, 0)), true
		end
	end
end

local function charge(s, cost)
	s.dirty = true
	if s.bucket then
		s.d = s.d + cost * s.per
	elseif s.log then
		if cost > 0 then log_add(s, cost) end
	else
		if s.w == 0 then s.w = now end
		s.n, s.own = s.n + cost, s.own + cost
	end
end

local function force(s, cost, window)
	local room, idle = nil, 0
	s.dirty = true
	if s.bucket then
		if window > 0 and s.d == 0 then idle = max(now - max(s.empty, window), 0) end
		s.most = s.most or 2 * s.tau
		room = floor(max(s.most - s.d, 0) / s.per)
	elseif s.log then
		room = max(2 * s.cap - used(s), 0)
	elseif not is_over(s, window) then
		s.late = false
		if s.w == 0 and window > 0 then s.w = min(window, now) end
		charge(s, cost)
		-- An interval bucket was empty: edges since then refilled it.
		if s.edge and s.fixed and window > 0 and s.n == cost then
			s.n = max(cost - s.edge * max(s.w - window, 0), 0)
		end
		return
	else
		s.late = true
		if is_previous(s, window) then
			s.p = s.p + cost
			s.late_excess = max(s.p - s.cap, 0)
		end
		return
	end
	if cost > room then
		s.dropped, cost = cost - room, room
		charge(s, cost)
		if s.bucket then s.d = max(s.d, s.most) end
	else
		charge(s, cost)
		if idle > 0 and idle > floor(s.d / TICKS) then
			-- Stored with the time at which it became empty.
			s.at, s.d = s.at - idle + math.ceil(s.d / TICKS), 0
		elseif idle > 0 then
			s.d = s.d - idle * TICKS
		end
	end
end

-- Removes the newest members first, of any node. A member of another node keeps that node's `own`.
local function log_refund(s, cost)
	local at, oldest, new = 0, now - s.per, #s.add
	-- Members that this command adds are not in the sorted set yet. Their time is s.begin.
	local function from_new()
		for i = new, 1, -1 do
			local member = s.add[i]
			local some = min(member[4], cost)
			member[4], member[5], cost = member[4] - some, member[5] - some, cost - some
			s.n, s.own = s.n - some, s.own - some
			if member[5] == 0 then table.remove(s.add, i) end
		end
		new = 0
	end
	while cost > 0 do
		local batch = call('ZRANGE', s.log, -at - 64, -at - 1, 'WITHSCORES')
		for i = #batch - 1, 1, -2 do
			local node, c, o = log_parse(batch[i])
			if batch[i + 1] + 0 <= s.begin then from_new() end
			if batch[i + 1] + 0 <= oldest then return end
			local some = s.out[batch[i]] and 0 or min(c, cost)
			if some > 0 then
				local less = node == own_name and min(some, o) or 0
				s.n, s.own, cost = s.n - some, s.own - less, cost - some
				log_out(s, batch[i])
				if c > some or o > less then
					s.add[#s.add + 1] = { batch[i + 1], string.match(batch[i], '^%d+') + 0,
						node, c - some, o - less }
				end
			end
		end
		if #batch < 128 then return from_new() end
		at = at + 64
	end
end

local function drain(s, cost)
	s.d = max(s.d - min(cost, 2 * s.cap) * s.per, s.h * s.per, 0)
end

local function refund(s, cost, window)
	s.dirty = true
	if s.bucket then
		s.own, s.e = now, max(s.e, s.at + floor(s.d / TICKS))
		drain(s, cost)
	elseif s.log then
		log_refund(s, cost)
	elseif is_over(s, window) then
		s.late = true
		if is_previous(s, window) then
			s.p = max(s.p - cost, 0)
			s.late_excess = max(s.p - s.cap, 0)
		end
	else
		local some = min(max(s.n - s.h, 0), cost)
		s.late = false
		s.n, s.own = s.n - some, max(s.own - some, 0)
		if window == 0 and s.sliding then s.p = max(s.p - (cost - some), 0) end
		if s.first and s.n == 0 then s.q, s.p, s.w, s.own, s.rolled = s.w, 0, 0, 0, true end
	end
end

local function lease_refund(s, lease, count)
	lease.g, s.dirty = lease.g - count, true
	if not is_current(s, lease) then
		if is_previous(s, lease.w) then s.p = max(s.p - count, 0) end
		return
	end
	s.h = max(s.h - count, 0)
	if s.bucket then
		drain(s, count)
	elseif not s.log then
		s.n = max(s.n - count, 0)
	end
end

-- Refunds expired leases.
local function expire_leases(s)
	local all = call('HGETALL', s.key)
	local first, last, k = nil, 0, 0
	s.lease, s.ended = nil, {}
	for i = 1, #all, 2 do
		local lease = string.sub(all[i], 1, 1) == 'l' and parse(all[i + 1])
		if lease and lease.til <= now then
			lease_refund(s, lease, lease.g)
			s.ended[#s.ended + 1] = all[i]
			s.dirty = true
		elseif lease then
			first, last, k = min(first or lease.til, lease.til), max(last, lease.til), k + 1
			if all[i] == lease_name then s.lease = lease end
		end
	end
	s.u, s.v, s.k, s.swept = first, last, k, true
end

local function lease_until(s, til)
	s.lease.til, s.dirty = til, true
	s.u, s.v = min((s.u or til) + 0, til), max((s.v or 0) + 0, til)
end

local function report(s, spent, returned, window)
	if s.bucket and s.kind == 0 and window > now then
		local d = min((window - now) * TICKS, 2 * s.tau)
		if d > s.d then s.d, s.dirty = d, true end
	end
	local lease = s.lease or { g = 0, til = 0, w = -1 }
	local some = min(spent, lease.g)
	if some > 0 then
		lease.g, s.dirty = lease.g - some, true
		if is_current(s, lease) then s.h = max(s.h - some, 0) end
		if s.log then
			charge(s, some)
		elseif not s.bucket and is_current(s, lease) then
			s.own = s.own + some
		end
	end
	if spent > some then force(s, spent - some, window) end
	some = min(returned, lease.g)
	if some > 0 then lease_refund(s, lease, some) end
end

local function fits(s)
	local room = s.cost > 0 and max(s.cap - s.hold, 0) or s.cap
	if s.bucket then return s.d <= (room - s.cost) * s.per end
	if s.first and s.edge and s.w > 0 and now >= s.w + s.edge then return false end
	return used(s) <= room - s.cost
end

local function grant(s, want, til)
	if s.first and s.w == 0 then s.w = now end
	local w = (s.bucket or s.log) and 0 or s.w
	if not s.lease then
		s.k, s.lease = s.k + 1, { g = 0, w = w }
	elseif not is_current(s, s.lease) then
		lease_refund(s, s.lease, s.lease.g)
		s.lease.w = w
	end
	lease_until(s, til)
	local room = max(s.cap - s.hold, 0)
	local left = s.bucket and floor(max(room * s.per - s.d, 0) / s.per) or max(room - used(s), 0)
	local tenth = min(max(floor(s.cap / (10 * s.k)) - s.lease.g, 0),
		floor(max(floor(s.cap / 10) - s.h, 0) / 2))
	local least = min(max(s.least - s.lease.g, 0), max(floor(s.cap / 4) - s.h, 0))
	local count = min(want, floor(left / (2 * s.k)), max(tenth, least))
	s.lease.g, s.h = s.lease.g + count, s.h + count
	if s.bucket then
		s.d = s.d + count * s.per
	elseif not s.log then
		s.n = s.n + count
	end
	return count
end

-- When the request fits, us; a lower bound if more than LOOK members have to expire first. If this
-- refusal counts, so much more has to expire, and at last itself.
local function log_fits(s)
	local counts = s.counts and s.cost or 0
	local need = used(s) + s.cost + counts - (s.cost > 0 and max(s.cap - s.hold, 0) or s.cap)
	local expired, til = #s.expired, 0
	local list = call('ZRANGE', s.log, expired, expired + LOOK, 'WITHSCORES')
	local new = 1
	table.sort(s.add, function(a, b) return a[1] + 0 < b[1] + 0 end)
	for i = 1, #list + 1, 2 do
		while s.add[new] and (i > #list or list[i + 1] + 0 > s.add[new][1] + 0) do
			need, til, new = need - s.add[new][4], s.add[new][1] + s.per, new + 1
			if need <= 0 then return til end
		end
		if i > 2 * LOOK then return til end
		if i < #list and not s.out[list[i]] then
			local node, c = log_parse(list[i])
			need, til = need - c, list[i + 1] + s.per
			if need <= 0 then return til end
		end
	end
	if counts > 0 then til = max(til, s.begin + s.per) end
	return max(til, (s.v or 0) + 0)
end

local function excess(s)
	local late = s.late_excess or 0
	if s.late and (late > 0 or s.kind > 0) then return late end
	if s.bucket then
		return math.ceil(max(s.d - (s.cap + s.h) * s.per, 0) / s.per) + (s.dropped or 0)
	end
	if s.log then return max(s.n + (s.dropped or 0) - s.cap, 0) end
	return max(used(s) - s.cap - s.h, 0)
end

-- The time until which the key is needed, us.
local function expires(s)
	local til = (s.v or 0) + 0
	if s.calendar then
		return (s.w < s.calendar and s.begins or s.w > s.calendar and s.ends + s.per or s.ends) + APART
	end
	if s.fixed then
		local edges = s.edge and math.ceil(s.n / s.edge) or 1
		return (s.w + max(edges, 1)) * s.per + GRACE
	end
	if s.sliding then
		return s.n > 1 and (s.w + 2) * s.per or (s.w + 1) * s.per + GRACE
	end
	if s.first then return (s.w > 0 and s.w or s.q) + s.per + GRACE end
	if s.bucket then return max(s.at + floor(s.d / TICKS) + (s.edge or 0), til, s.e) end
	local newest = call('ZRANGE', s.log, -1, -1, 'WITHSCORES')
	return max((newest[2] or now - s.per) + s.per, til)
end

-- Writes the leases; without leases the fields are removed.
local function close_lease(s)
	local key, lease = s.key, s.lease
	for _, field in ipairs(s.ended or {}) do call('HDEL', key, field) end
	if s.k == 0 then return call('HDEL', key, 'h', 'k', 'u', 'v') end
	if lease then
		call('HSET', key, lease_name, string.format('%.0f %.0f %.0f', lease.g, lease.til, lease.w))
	end
	call('HSET', key, 'h', s.h, 'k', s.k, 'u', s.u, 'v', s.v)
end

-- A new window has no charges of any node yet, but it keeps the leases.
local function clear_window(s)
	if s.fresh then return end
	if not s.u and not s.lease then return call('DEL', s.key) end
	local all = call('HGETALL', s.key)
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 1) == 'o' then call('HDEL', s.key, all[i]) end
	end
end

local function close(s)
	local key, before = s.key, s.n0
	if s.bucket then
		call('HSET', key, 'd', s.d, 't', s.at, 'r', s.tau)
		if s.own > 0 then
			call('HSET', key, 'b', s.own, 'e', s.e)
		elseif s.unmark then
			call('HDEL', key, 'b', 'e')
		end
	elseif s.log then
		for i = 1, #s.expired, 100 do
			call('ZREM', s.log, unpack(s.expired, i, min(i + 99, #s.expired)))
		end
		for _, member in ipairs(s.out) do call('ZREM', s.log, member) end
		for _, new in ipairs(s.add) do
			call('ZADD', s.log, new[1],
				string.format('%015.0f %s %.0f %.0f', new[2], new[3], new[4], new[5]))
		end
		for node, count in pairs(s.others or {}) do call('HINCRBY', key, node, count) end
		call('HSET', key, 'n', s.n, 's', s.s, own_name, s.own)
	else
		if s.rolled then clear_window(s) end
		if s.first then
			call('HSET', key, 'w', s.w, 'n', s.n, 'p', s.p, 'q', s.q, own_name, s.own)
		elseif s.rolled or s.fresh or s.p ~= s.p0 then
			call('HSET', key, 'w', s.w, 'n', s.n, 'p', s.p, own_name, s.own)
		else
			call('HSET', key, 'n', s.n, own_name, s.own)
		end
	end
	if s.leased or s.swept or (s.rolled and s.u) then close_lease(s) end
	-- Within a window only the first requests change the expiry.
	if s.bucket or s.log or s.edge or s.rolled or s.fresh or s.n < 2 or s.n0 < 2 then
		local at = floor(expires(s) / 1000) + 1
		call('PEXPIREAT', key, at)
		if s.log then call('PEXPIREAT', s.log, at) end
	end
end

local buckets, passed, i, k = {}, 1, 3, 1
while i <= argc do
	local op = ARGV[i] + 0
	local state, ext = floor(op / 4) % 8, floor(op / 32) % 2 == 1
	local s = { key = KEYS[k], kind = op % 4, cap = ARGV[i + 1] + 0, per = ARGV[i + 2] + 0,
		cost = ARGV[i + 3] + 0, hold = ARGV[i + 4] + 0, bucket = state == 0, fixed = state == 1,
		sliding = state == 2, first = state == 4, up = floor(op / 256) % 2 == 1 }
	k, i = k + 1, i + 5
	if floor(op / 64) % 2 == 1 then s.edge, i = ARGV[i] + 0, i + 1 end
	if op >= 512 then
		s.calendar, s.begins, s.ends, i = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0, i + 3
		if now < s.begins - s.per or now >= s.ends + s.per then return { now } end
	end
	local refused, since = 0, 0
	if floor(op / 128) % 2 == 1 then s.counts, refused, since, i = true, ARGV[i] + 0, ARGV[i + 1] + 0, i + 2 end
	if state == 3 then
		s.log, k = KEYS[k], k + 1
		open_log(s)
	elseif s.bucket then
		open_bucket(s)
	else
		open_window(s)
	end
	s.n0, s.p0 = s.n, s.p
	s.k = 0
	if s.h then open_lease(s) end
	s.h = s.rolled and 0 or (s.h or 0) + 0
	-- Units of leases stay charged for as long as the leases last.
	if s.bucket then s.d = max(s.d, s.h * s.per) end
	if s.u and now >= s.u + 0 then expire_leases(s) end
	if ext then
		s.window, s.want = ARGV[i] + 0, ARGV[i + 1] + 0
		s.til, s.least, s.most = ARGV[i + 4] + 0, ARGV[i + 5] + 0, ARGV[i + 6] + 0
		report(s, ARGV[i + 3] + 0, ARGV[i + 2] + 0, s.window)
		if s.lease then s.leased = true end
		if s.lease and s.til > 0 then lease_until(s, now + s.til) end
		i = i + 7
	end
	if refused > 0 then fill(s, refused, since) end
	if s.kind == 0 and not fits(s) then s.over, passed = true, 0 end
	buckets[#buckets + 1] = s
end
if i ~= argc + 1 or k ~= #KEYS + 1 then
	return redis.error_reply('ERR charge.lua: bad arguments')
end

local reply = { now, passed }
for _, s in ipairs(buckets) do
	local granted, at = 0, #reply
	if s.cost > 0 then
		if s.kind == 1 then
			force(s, s.cost, s.window or 0)
		elseif s.kind == 2 then
			refund(s, s.cost, s.window or 0)
		elseif s.kind == 0 and passed == 1 then
			charge(s, s.cost)
		end
	end
	if s.kind == 0 and s.want and s.want > 0 and
	   (passed == 1 or (s.cost == 0 and not s.over)) then
		granted, s.leased = grant(s, s.want, now + s.til), true
	end
	local over, held = excess(s), s.lease and is_current(s, s.lease) and s.lease.g or 0
	local full = s.over and s.log and log_fits(s) or 0
	local more = granted > 0 or over > 0 or held > 0 or full > 0
	reply[at + 1] = (s.over and 1 or 0) + (s.kind > 0 and s.late and 2 or 0) + (more and 4 or 0)
	reply[at + 2] = (s.bucket or s.log) and used(s) or s.n
	reply[at + 3] = (s.first and s.q or s.p) or 0
	reply[at + 4] = s.w or 0
	reply[at + 5] = s.own or 0
	if more then
		reply[at + 6], reply[at + 7], reply[at + 8], reply[at + 9] = held, granted, over, full
	end
	if s.dirty then
		close(s)
	elseif s.swept and s.u then
		-- No lease has expired, and nothing else changed.
		call('HSET', s.key, 'u', s.u, 'v', s.v)
	end
end
return reply
