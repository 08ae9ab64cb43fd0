// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * share_due.c - what is told to the store in the background, and how fast.
 *
 * An entry tells one matter at a time, the oldest first: what was charged in a window that is
 * over, what is given back, what the store lost, its lease, what is new. Each is taken out of the
 * entry when it goes out and comes back into it if it did not arrive.
 *
 * Nobody knows what became of a telling whose connection ended. It is told again, so it may be
 * charged twice: an error towards fewer. What is given back is not, unless it was never sent.
 *
 * A telling that has failed waits for some hundred milliseconds, each for another time, and all such
 * together go out at 100 a second; from the first that arrives on at twice as many every 100 ms, so a
 * store that is back is not met by all that has piled up. So do looks at what it may have lost. Others are not held back by them: it may
 * be one server of many that is away.
 */
#include "cluster/quota/share_private.h"

#define RETRY_MIN_NS 100000000ULL
#define RETRY_MAX_NS 2000000000ULL
#define PACE_SLOW 100.0
#define PACE_FREE 100000.0
#define PACE_RAISE_NS 100000000ULL
#define LOOK_EVERY_NS (5 * SL_NS_PER_SEC)
#define LOOK_SPREAD_NS 100000000ULL
#define EARNED_RETURN 20		/* calls that pay for a lease given back early: share_ask.c */

/* ------------------------------------------------------------------ pace */

static u32 pace_allows(struct share_pace *pace, u32 max, u64 now_ns)
{
	double most = pace->rate / 10 + 1;

	if (!pace->slow)
		return max;
	pace->tokens += share_less(now_ns, pace->at_ns) / 1e9 * pace->rate;
	pace->at_ns = now_ns;
	if (pace->tokens > most)
		pace->tokens = most;
	return pace->tokens < max ? (u32)pace->tokens : max;
}

static void pace_begin(struct share_pace *pace, u64 now_ns)
{
	if (!pace->slow)
		*pace = (struct share_pace){ .slow = true, .rate = PACE_SLOW, .at_ns = now_ns,
					     .raised_ns = now_ns };
}

static void pace_answered(struct share_pace *pace, bool arrived, bool again, u64 now_ns)
{
	if (!arrived && !pace->slow) {
		pace_begin(pace, now_ns);
	} else if (!arrived) {
		pace->rate = pace->rate / 2 > PACE_SLOW ? pace->rate / 2 : PACE_SLOW;
	} else if (pace->slow && again && now_ns >= pace->raised_ns + PACE_RAISE_NS) {
		pace->rate *= 2;
		pace->raised_ns = now_ns;
		pace->slow = pace->rate < PACE_FREE;
	}
}

/* ------------------------------------------------------------------ what an entry has to say */

static bool say_late(struct share_entry *e, struct share_due *due)
{
	due->matter = SHARE_TELLS_LATE;
	due->bucket.kind = SHARED_FORCE;
	due->bucket.cost = e->late;
	due->bucket.window = e->late_window;
	e->late = 0;
	return due->bucket.cost;
}

static bool say_back(struct share_entry *e, struct share_due *due)
{
	due->matter = SHARE_TELLS_BACK;
	due->bucket.kind = SHARED_BACK;
	due->bucket.cost = e->back;
	due->bucket.window = 0;
	e->back = 0;
	share_add(&e->backing, due->bucket.cost);
	return due->bucket.cost;
}

static bool say_lost(const struct shares *shares, struct share_entry *e, struct share_due *due,
		     struct sl_now now)
{
	bool look = e->flags & SHARE_LOOK && share_may_be_lost(shares, e, now);

	e->flags &= ~SHARE_LOOK;
	due->matter = SHARE_TELLS_LOST;
	due->bucket.kind = SHARED_TAKE;
	share_put_back(shares, e, &due->bucket, now);
	return due->bucket.put_back || look;
}

static bool say_lease(const struct shares *shares, struct share_entry *e, struct share_due *due,
		      struct sl_now now)
{
	bool over = share_lease_over(shares, e, now), ending = shares->ending;
	bool idle = now.mono_ns > e->used_ns + e->every_ns / 2;
	u64 target = idle || ending ? 0 : share_target(e, now.mono_ns);

	if (!e->spent && over && !ending)
		e->credit = 0;
	if (!e->credit && !e->spent)
		return false;
	due->matter = SHARE_TELLS_LEASE;
	due->bucket.kind = SHARED_TAKE;
	if (!e->spent && !(idle && e->earned >= EARNED_RETURN) && !ending)
		return false;
	e->earned = idle && !e->spent ? 0 : e->earned;
	share_say_lease(shares, e, &due->bucket, over || !target, now);
	share_want_lease(e, &due->bucket, target);
	return due->bucket.spent || due->bucket.returned;
}

/*
 * When all of them would have had to come at once, for as much to be left of them now as is: of a
 * bucket that nobody else uses the store then has what this node's word says.
 */
static u64 when_us(const struct share_entry *e, u64 hits, u64 store_ns, u64 now_ns)
{
	u64 all_ns = hits * share_interval_us(&e->def) * 1e3;

	return share_less(store_ns, share_less(all_ns, share_less(e->empty_ns, now_ns))) / 1000;
}

/*
 * Of a bucket at most what a node can have admitted in two intervals: after an outage the rest is
 * forgiven, or a limit would be shut for as long as it had been open.
 */
static bool say_new(struct share_entry *e, struct share_due *due, u64 store_ns, u64 now_ns)
{
	u64 hits = e->unsent;

	e->unsent = 0;
	due->matter = SHARE_TELLS_NEW;
	due->bucket.kind = SHARED_FORCE;
	due->bucket.window = share_is_window(&e->def) ? e->window : 0;
	if (hits && share_is_bucket(&e->def)) {
		due->bucket.window = when_us(e, hits, store_ns, now_ns);
		e->empty_ns = 0;
	}
	if (hits && share_is_bucket(&e->def) && e->consistency == CONSISTENCY_WRITE_BACK) {
		u64 most = share_capacity(&e->def) +
			   2 * e->every_ns / 1e3 / share_interval_us(&e->def);

		hits = share_min(hits, most);
		due->bucket.debt = SL_BIT(40);
	}
	due->bucket.cost = hits;
	e->told = hits;
	e->renewed_ns = now_ns;
	return hits;
}

static bool say(struct shares *shares, struct share_set *set, struct share_entry *e,
		struct share_due *due, struct sl_now now)
{
	u64 key = set->key[e - set->entry];

	share_roll(shares, set, e, now);
	*due = (struct share_due){ .def = e->def };
	due->bucket.key = key;
	due->bucket.tag = e->tag;
	due->bucket.def = e->def;
	due->bucket.asked_ns = now.mono_ns;
	due->ref = (struct share_ref){ key, e->tag, NULL, e->consistency, e->every_ns, e->metric };
	if (say_late(e, due) || say_back(e, due))
		return true;
	if (say_lost(shares, e, due, now))
		return true;
	if (e->consistency == CONSISTENCY_LEASE && say_lease(shares, e, due, now))
		return true;
	return say_new(e, due, share_store_ns(shares, now), now.mono_ns);
}

/* ------------------------------------------------------------------ due */

/*
 * After a loss, of each bucket of which the store ought to have something of this node's and
 * has not answered for since: nobody may ask for it for long, and other nodes give it away.
 * They go out as fast as what had failed does.
 */
static void look_after_loss(struct shares *shares, struct sl_now now)
{
	u64 lost_us = __atomic_load_n(&shares->lost_us, __ATOMIC_RELAXED);

	if (lost_us == shares->looked_us ||
	    (shares->looked_us && now.mono_ns < shares->looked_ns + LOOK_EVERY_NS))
		return;
	shares->looked_us = lost_us;
	shares->looked_ns = now.mono_ns;
	pace_begin(&shares->pace, now.mono_ns);
	for (u32 i = 0; i < shares->sets; i++) {
		struct share_set *set = &shares->set[i];

		share_lock(&set->lock);
		for (u32 way = 0; way < SHARE_WAYS; way++) {
			struct share_entry *e = &set->entry[way];

			if (!set->key[way] || !share_may_be_lost(shares, e, now))
				continue;
			e->flags |= SHARE_LOOK;
			share_schedule(shares, set, e,
				       share_phase(set->key[way], LOOK_SPREAD_NS, now.mono_ns));
		}
		share_unlock(&set->lock);
	}
}

/* What tells something else looks with that, and is not held back. */
static bool only_looks(const struct share_entry *e)
{
	return e->flags & SHARE_LOOK &&
	       !(e->unsent | e->late | e->back | e->lost | e->credit | e->spent);
}

/* What of a set is due; the set's time is then that of its next. */
static u32 due_of_set(struct shares *shares, u32 index, struct share_due *ret, u32 max,
		      u32 *retries, struct sl_now now)
{
	struct share_set *set = &shares->set[index];
	u64 next = SHARE_NEVER;
	u32 count = 0;

	share_lock(&set->lock);
	for (u32 way = 0; way < SHARE_WAYS; way++) {
		struct share_entry *e = &set->entry[way];

		if (!set->key[way] || e->flags & SHARE_TELLING)
			continue;
		bool paced = e->flags & SHARE_RETRY || only_looks(e);

		if (e->due_ns <= now.mono_ns && count < max && (!paced || *retries)) {
			e->due_ns = SHARE_NEVER;
			if (say(shares, set, e, &ret[count], now)) {
				*retries -= paced;
				e->flags |= SHARE_TELLING;
				count++;
				continue;
			}
		}
		next = share_min(next, e->due_ns);
	}
	__atomic_store_n(&shares->due_ns[index], next, __ATOMIC_RELAXED);
	share_unlock(&set->lock);
	return count;
}

u32 shares_due(struct shares *shares, struct share_due *ret, u32 max, struct sl_now now)
{
	u32 allowed = pace_allows(&shares->pace, max, now.mono_ns), retries = allowed;
	u32 count = 0, walked;
	u64 next = SHARE_NEVER, at;

	share_clock_look(shares, now);
	look_after_loss(shares, now);
	if (__atomic_load_n(&shares->next_ns, __ATOMIC_ACQUIRE) > now.mono_ns)
		return 0;
	/* Whoever schedules from here on lowers it again. */
	__atomic_store_n(&shares->next_ns, SHARE_NEVER, __ATOMIC_SEQ_CST);
	for (walked = 0; walked < shares->sets; walked++) {
		u32 index = shares->cursor;

		at = __atomic_load_n(&shares->due_ns[index], __ATOMIC_RELAXED);
		if (at <= now.mono_ns && count < max) {
			count += due_of_set(shares, index, &ret[count], max - count, &retries, now);
			at = __atomic_load_n(&shares->due_ns[index], __ATOMIC_RELAXED);
		}
		next = share_min(next, at);
		if (count == max) {
			next = now.mono_ns;
			break;
		}
		shares->cursor = index + 1 == shares->sets ? 0 : index + 1;
	}
	share_lower(&shares->next_ns, next);
	for (u32 i = 0; i < count; i++)
		ret[i].ref.def = &ret[i].def;
	if (shares->pace.slow)
		shares->pace.tokens -= allowed - retries;
	return count;
}

void shares_end(struct shares *shares)
{
	__atomic_store_n(&shares->ending, true, __ATOMIC_RELAXED);
	for (u32 i = 0; i < shares->sets; i++) {
		struct share_set *set = &shares->set[i];

		share_lock(&set->lock);
		for (u32 way = 0; way < SHARE_WAYS; way++) {
			struct share_entry *e = &set->entry[way];

			if (set->key[way] && (e->unsent | e->late | e->back | e->lost |
					      e->credit | e->spent))
				share_schedule(shares, set, e, 0);
		}
		share_unlock(&set->lock);
	}
}

/* ------------------------------------------------------------------ told */

static void arrived(struct shares *shares, struct share_set *set, struct share_entry *e,
		    const struct share_due *due, const struct shared_ask *ask, struct sl_now now)
{
	if (due->matter == SHARE_TELLS_NEW || !e->unsent)
		e->flags &= ~SHARE_FAILED;
	share_learn(shares, set, e, &due->bucket, ask, now);
}

static void failed(struct share_entry *e, const struct share_due *due, bool sent)
{
	u64 hits = due->bucket.cost;

	/* Whatever it told: what is new waits behind it, and would pile up untold. */
	e->flags |= SHARE_FAILED;
	switch (due->matter) {
	case SHARE_TELLS_LATE:
		if (!e->late)
			e->late_window = due->bucket.window;
		if (e->late_window == due->bucket.window)
			share_add(&e->late, hits);
		break;
	case SHARE_TELLS_BACK:
		if (!sent)
			share_add(&e->back, hits);
		break;
	case SHARE_TELLS_NEW:
		if (!share_is_window(&e->def) || due->bucket.window == e->window) {
			share_add(&e->unsent, hits);
			e->empty_ns = SHARE_NEVER / 2;
		} else if (!e->late || e->late_window == due->bucket.window) {
			e->late_window = due->bucket.window;
			share_add(&e->late, hits);
		}
		break;
	default:
		break;
	}
}

/* When the rest of an entry is due. What is new had its time when something else was told instead. */
static void go_on(struct shares *shares, struct share_set *set, struct share_entry *e, u64 key,
		  enum share_matter told, bool ok, u64 now_ns)
{
	u64 at_ns = now_ns, retry_ns = e->every_ns;

	if (!ok) {
		retry_ns = retry_ns < RETRY_MIN_NS ? RETRY_MIN_NS : share_min(retry_ns, RETRY_MAX_NS);
		at_ns = share_phase(key, retry_ns, now_ns + retry_ns / 2);
	}
	if (e->late | e->back | e->lost)
		share_schedule(shares, set, e, at_ns);
	if (e->consistency == CONSISTENCY_LEASE && (e->spent || e->credit)) {
		if (ok)
			share_schedule_lease(shares, set, e, now_ns);
		else
			share_schedule(shares, set, e, at_ns);
	}
	if (!e->unsent)
		return;
	if (ok && told == SHARE_TELLS_NEW && e->consistency == CONSISTENCY_WRITE_BACK)
		at_ns = share_phase(key, e->every_ns, now_ns);
	share_schedule(shares, set, e, at_ns);
}

void shares_told(struct shares *shares, const struct share_due *due, const struct shared_ask *ask,
		 enum shared_outcome outcome, struct sl_now now, u64 *ret_unsent)
{
	bool ok = outcome == SHARED_DONE;
	struct share_set *set;
	struct share_entry *e;
	u64 due_ns;

	*ret_unsent = 0;
	if (outcome == SHARED_LATE) {
		/* Until it is known to have arrived no more is let through untold. */
		e = share_find(shares, due->ref.key, &set);
		if (e) {
			e->flags |= SHARE_FAILED;
			*ret_unsent = share_entry_unsent(e);
			share_unlock(&set->lock);
		}
		return;
	}
	if (ok) {
		share_clock_heard(shares, due->bucket.asked_ns, now, ask->now_us);
		share_note_excess(shares, due->ref.metric, &due->bucket, ask->now_us);
	}
	e = share_find(shares, due->ref.key, &set);
	if (!e)
		return;
	pace_answered(&shares->pace, ok,
		      e->flags & SHARE_RETRY || due->matter == SHARE_TELLS_LOST, now.mono_ns);
	e->told = 0;
	e->flags = ok ? e->flags & ~SHARE_RETRY : e->flags | SHARE_RETRY;
	if (ok)
		arrived(shares, set, e, due, ask, now);
	else if (!(e->flags & SHARE_AGAIN))
		failed(e, due, ask != NULL);
	share_settle(shares, set, e, &due->bucket, ok, now);
	if (due->matter == SHARE_TELLS_LEASE)
		share_lease_answered(shares, set, e, &due->bucket, ok, now);
	e->flags &= ~SHARE_TELLING;
	if (!(e->flags & SHARE_WANTING))
		e->flags &= ~SHARE_AGAIN;
	/* What became due meanwhile was not put into the set's time. */
	due_ns = e->due_ns;
	e->due_ns = SHARE_NEVER;
	share_schedule(shares, set, e, due_ns);
	go_on(shares, set, e, due->ref.key, due->matter, ok, now.mono_ns);
	*ret_unsent = share_entry_unsent(e);
	share_unlock(&set->lock);
}
