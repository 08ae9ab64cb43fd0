// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * aggregate.c - see aggregate.h.
 *
 * Users: the values of a descriptor under a rule that source_budget.user names, or, if it names
 * none, under a rule with push_down. A value that is the source's own address is not a user.
 *
 * A refusal belongs to the descriptor that is over its limit. It counts for a user if that
 * descriptor has all entries of the user's; refusals that all users of an office caused together
 * are not counted for any user.
 */
#include "request/mitigation/aggregate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/hash.h"
#include "request/rules/override_value.h"
#include "request/rules/rule_values.h"

#define RING_NOTES 4096			  /* a power of two */
#define RING_SAMPLES (RING_NOTES / 4 * 3) /* the rest is kept for users and refusals */

struct ring_note {
	enum { NOTE_USER, NOTE_REFUSED, NOTE_ALLOWED } kind;
	union {
		struct user_note user;
		struct refusal_note refusal;
	};
};

/* One worker writes, the main thread reads. */
struct ring {
	_Alignas(64) _Atomic u32 head; /* written by the worker */
	_Atomic u64 lost;
	_Atomic u64 allowed; /* descriptors that were allowed, sampled or not */
	u64 random;
	_Alignas(64) _Atomic u32 tail; /* written by the main thread */
	_Atomic u32 every;	       /* one of so many allowed ones is noted */
	u64 allowed_before;	       /* aggregate_pace() */
	_Alignas(64) struct ring_note note[RING_NOTES];
};

struct aggregate {
	struct sl_seed seed;
	int fd;
	u32 workers;
	struct ring *ring;
	/* The settings of the workers; written by the main thread only. */
	_Atomic u32 user_rules;
	_Atomic u64 user_rule[AGGREGATE_RULES_MAX];
	_Atomic bool sources; /* whether sources are used at all */
	_Atomic u8 prefix[SL_FAMILY_COUNT];
};

int aggregate_new(u32 workers, struct aggregate **ret)
{
	struct aggregate *aggregate = calloc(1, sizeof(*aggregate));

	if (!aggregate)
		return -ENOMEM;
	aggregate->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	aggregate->workers = workers;
	aggregate->ring = aligned_alloc(64, workers * sizeof(*aggregate->ring));
	if (aggregate->fd < 0 || !aggregate->ring ||
	    getrandom(&aggregate->seed, sizeof(aggregate->seed), 0) != sizeof(aggregate->seed)) {
		aggregate_free(aggregate);
		return -ENOMEM;
	}
	for (u32 i = 0; i < workers; i++) {
		atomic_init(&aggregate->ring[i].head, 0);
		atomic_init(&aggregate->ring[i].tail, 0);
		atomic_init(&aggregate->ring[i].lost, 0);
		atomic_init(&aggregate->ring[i].allowed, 0);
		atomic_init(&aggregate->ring[i].every, 1);
		aggregate->ring[i].allowed_before = 0;
		aggregate->ring[i].random = aggregate->seed.k0 + i;
	}
	*ret = aggregate;
	return 0;
}

void aggregate_free(struct aggregate *aggregate)
{
	if (!aggregate)
		return;
	if (aggregate->fd >= 0)
		close(aggregate->fd);
	free(aggregate->ring);
	free(aggregate);
}

/* "api/user": the domain, and the path in it. */
static bool names_users(const struct budget_def *budget, const struct rule *rule)
{
	size_t len = strlen(rule->domain);

	for (size_t i = 0; i < budget->user_count; i++)
		if (!strncmp(budget->user[i], rule->domain, len) && budget->user[i][len] == '/' &&
		    !strcmp(budget->user[i] + len + 1, rule->path))
			return true;
	return false;
}

void aggregate_configure(struct aggregate *aggregate, const struct http_def *def,
			 const struct ruleset *rules)
{
	bool push = false;
	u32 count = 0;

	for (u32 i = 0; i < rules->rule_count; i++) {
		push |= rules->rule[i]->push.after;
		if (count < AGGREGATE_RULES_MAX && names_users(&def->budget, rules->rule[i]))
			aggregate->user_rule[count++] = rules->rule[i]->id;
	}
	/*
	 * Rules are named, but none of them exists: 0 matches no rule, so no value is a user.
	 * (An empty list would make every value a user.)
	 */
	if (!count && def->budget.user_count)
		aggregate->user_rule[count++] = 0;
	aggregate->user_rules = count;
	for (u32 family = 0; family < SL_FAMILY_COUNT; family++)
		aggregate->prefix[family] = def->push_down.prefix[family];
	aggregate->sources = (push && def->push_down.mode != PUSH_MODE_OFF) || def->budget.limit[0];
}

int aggregate_fd(const struct aggregate *aggregate)
{
	return aggregate->fd;
}

/* ------------------------------------------------------------------ workers */

static void put(struct aggregate *aggregate, u32 worker, const struct ring_note *note)
{
	struct ring *ring = &aggregate->ring[worker];
	u32 head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	u32 used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
	const u64 one = 1;

	if (used == RING_NOTES) {
		atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
		return;
	}
	ring->note[head % RING_NOTES] = *note;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	/* Fails only if the main thread has many pending wakeups. */
	if (used == RING_NOTES / 2 && write(aggregate->fd, &one, sizeof(one)) < 0)
		return;
}

/* Hash of a rule and the values under it; never 0. */
static u64 who_is(const struct aggregate *aggregate, const struct rule *rule,
		  const struct request_descriptor *descriptor)
{
	u64 hash = rule->id;

	for (u32 i = 0; i < descriptor->count; i++) {
		struct bytes key = descriptor->entry[i].key,
			     value = rule_value_counted(rule, descriptor, i);

		if (rule->place == RULE_DEFAULT)
			hash = hash_bytes(aggregate->seed, hash, key.at, key.len);
		hash = hash_bytes(aggregate->seed, hash, value.at, value.len);
	}
	return hash ? hash : 1;
}

static bool is_source(const struct request *request, struct bytes value)
{
	char text[SL_PREFIX_TEXT];
	struct sl_prefix prefix;
	const char *reason;

	if (!request->has_source || value.len < 2 || value.len >= sizeof(text) ||
	    memchr(value.at, '/', value.len) || memchr(value.at, 0, value.len))
		return false;
	memcpy(text, value.at, value.len);
	text[value.len] = 0;
	return sl_prefix_parse(text, &prefix, &reason) == 0 &&
	       sl_prefix_equal(&prefix, &request->source);
}

static bool is_user(struct aggregate *aggregate, const struct request *request, u32 i,
		    const struct rule *rule)
{
	const struct request_descriptor *descriptor = &request->descriptor[i];
	u32 count = atomic_load_explicit(&aggregate->user_rules, memory_order_relaxed);
	bool named = !count && rule->push.after;

	for (u32 k = 0; k < count && !named; k++)
		named = aggregate->user_rule[k] == rule->id;
	return named && descriptor->count &&
	       !is_source(request, descriptor->entry[descriptor->count - 1].value);
}

/* Whether `outer` has all the entries of `inner`. */
static bool has_entries(const struct request_descriptor *outer,
			const struct request_descriptor *inner)
{
	for (u32 i = 0; i < inner->count; i++) {
		bool found = false;

		for (u32 k = 0; k < outer->count && !found; k++)
			found = bytes_same(outer->entry[k].key, inner->entry[i].key) &&
				bytes_same(outer->entry[k].value, inner->entry[i].value);
		if (!found)
			return false;
	}
	return true;
}

static bool refuses(const struct response_status *status)
{
	return status->over && !status->shadow && status->rule;
}

/* Thousandths of requests/s, of the smallest limit that applies to the values. */
static u32 smallest_rate(const struct rule *rule, const struct request_descriptor *descriptor)
{
	struct bytes value[REQUEST_ENTRIES_MAX];
	const struct rule_limit *limit = rule->limit;
	const struct override_limits *own;
	u32 count = rule->limit_count;
	double least = 0;
	bool any = false;

	for (u32 i = 0; i < descriptor->count; i++)
		value[i] = descriptor->entry[i].value;
	own = override_value_find(rule, value);
	if (own) {
		limit = own->limit;
		count = own->limit_count;
	}
	for (u32 i = 0; i < count; i++) {
		const struct rate *rate = &limit[i].terms.rates.rate[0];
		double mrps = (double)rate->count * 1e12 / (double)rate->period_ns;

		if (limit[i].mode == SL_MODE_SHADOW || rate->unit == RATE_IN_FLIGHT ||
		    (any && mrps >= least))
			continue;
		least = mrps;
		any = true;
	}
	return least > 4e9 ? 4000000000U : (u32)least;
}

static void note_value(struct aggregate *aggregate, u32 worker, struct ring_note *note,
		       const struct request_descriptor *descriptor, const struct rule *rule)
{
	struct refusal_note *refusal = &note->refusal;

	refusal->who = who_is(aggregate, rule, descriptor);
	refusal->rule_id = rule->id;
	refusal->rule_index = rule->index;
	refusal->value_len =
		(u32)rule_values_write(rule, descriptor, refusal->value, sizeof(refusal->value));
	put(aggregate, worker, note);
}

/* Whether this allowed descriptor is noted, and for how many it stands. */
static bool is_sampled(struct ring *ring, u32 *ret_stands_for)
{
	u32 every = atomic_load_explicit(&ring->every, memory_order_relaxed);
	u32 head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	atomic_store_explicit(&ring->allowed,
			      atomic_load_explicit(&ring->allowed, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	*ret_stands_for = every;
	ring->random = ring->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (every == 1 || (ring->random >> 33) % every == 0) &&
	       head - atomic_load_explicit(&ring->tail, memory_order_acquire) < RING_SAMPLES;
}

static void note_allowed(struct aggregate *aggregate, u32 worker, struct ring_note *note,
			 const struct request *request, const struct response *response)
{
	note->kind = NOTE_ALLOWED;
	for (u32 i = 0; i < response->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];
		const struct rule *rule = response->status[i].rule;

		if (rule && descriptor->count && descriptor->hits && !descriptor->refund &&
		    is_sampled(&aggregate->ring[worker], &note->refusal.stands_for))
			note_value(aggregate, worker, note, descriptor, rule);
	}
}

/* Returns whether the descriptor has a user. */
static bool note_user(struct aggregate *aggregate, u32 worker, struct user_note user,
		      const struct request *request, const struct response *response, u32 at)
{
	const struct request_descriptor *descriptor = &request->descriptor[at];
	const struct response_status *status = &response->status[at];

	if (!status->rule || !is_user(aggregate, request, at, status->rule))
		return false;
	user.user = who_is(aggregate, status->rule, descriptor);
	user.rate_mrps = user.allowed ? smallest_rate(status->rule, descriptor) : 0;
	for (u32 i = 0; i < response->count && !user.allowed && !user.own_refusal; i++)
		user.own_refusal = refuses(&response->status[i]) &&
				   has_entries(&request->descriptor[i], descriptor);
	put(aggregate, worker, &(struct ring_note){ .kind = NOTE_USER, .user = user });
	return true;
}

/* For requests without a user: a rule that names abusers, or that counts by source. */
static bool is_own_refusal(const struct request *request, const struct response *response)
{
	for (u32 i = 0; i < response->count; i++) {
		const struct request_descriptor *descriptor = &request->descriptor[i];

		if (refuses(&response->status[i]) &&
		    (response->status[i].rule->push.after ||
		     (descriptor->count &&
		      is_source(request, descriptor->entry[descriptor->count - 1].value))))
			return true;
	}
	return false;
}

/* The bit of the limit that refused: an override's has the name of the rule's. */
static u8 bit_of_limit(const struct response_status *status)
{
	for (u32 i = 0; status->limit && i < status->rule->limit_count; i++)
		if (!strcmp(status->rule->limit[i].name, status->limit->name))
			return (u8)(1U << i);
	return 0;
}

struct sl_prefix aggregate_group(const struct sl_prefix *address, const u8 len[SL_FAMILY_COUNT])
{
	struct sl_prefix group = *address;

	if (len[group.family] && len[group.family] < group.len)
		group.len = len[group.family];
	group.addr = sl_addr_mask(group.addr, group.len);
	return group;
}

void aggregate_note(void *arg, u32 thread, const struct request *request,
		    const struct response *response)
{
	struct aggregate *aggregate = arg;
	const u8 len[SL_FAMILY_COUNT] = { aggregate->prefix[0], aggregate->prefix[1] };
	struct sl_prefix address = { .addr = request->source.addr,
				     .family = request->source.family,
				     .len = request->source.family == SL_V4 ? 32 : 128 };
	struct sl_prefix group = aggregate_group(&address, len);
	bool pushes = request->rights & MAY_PUSH;
	struct user_note user = { .group = group,
				  .address = address,
				  .allowed = response->code == RESPONSE_OK,
				  .first = true };
	struct ring_note note = { .kind = NOTE_REFUSED,
				  .refusal = { .has_source = request->has_source,
					       .may_push = pushes,
					       .group = group,
					       .address = address,
					       .stands_for = 1 } };

	if (request->peek ||
	    (response->code != RESPONSE_OK && response->code != RESPONSE_OVER_LIMIT))
		return;
	/*
	 * Requests of callers without the right to push down are not counted for a source, neither
	 * as allowed nor as refused.
	 */
	if (request->has_source && pushes &&
	    atomic_load_explicit(&aggregate->sources, memory_order_relaxed)) {
		for (u32 i = 0; i < response->count; i++)
			if (!request->descriptor[i].refund && request->descriptor[i].hits &&
			    note_user(aggregate, thread, user, request, response, i))
				user.first = false;
		if (user.first) {
			user.own_refusal = !user.allowed && is_own_refusal(request, response);
			put(aggregate, thread,
			    &(struct ring_note){ .kind = NOTE_USER, .user = user });
		}
	}
	if (user.allowed) {
		note_allowed(aggregate, thread, &note, request, response);
		return;
	}
	for (u32 i = 0; i < response->count; i++)
		if (refuses(&response->status[i]) && !request->descriptor[i].refund) {
			note.refusal.limits = bit_of_limit(&response->status[i]);
			note_value(aggregate, thread, &note, &request->descriptor[i],
				   response->status[i].rule);
		}
}

/* ------------------------------------------------------------------ the main thread */

static void deliver(const struct ring_note *note, const struct aggregate_sink *sink)
{
	if (note->kind == NOTE_USER)
		sink->user(&note->user, sink->arg);
	else if (note->kind == NOTE_REFUSED)
		sink->refused(&note->refusal, sink->arg);
	else
		sink->allowed(&note->refusal, sink->arg);
}

void aggregate_drain(struct aggregate *aggregate, const struct aggregate_sink *sink)
{
	u64 woken;

	if (read(aggregate->fd, &woken, sizeof(woken)) < 0)
		woken = 0; /* no wakeup: called by the tick */
	for (u32 worker = 0; worker < aggregate->workers; worker++) {
		struct ring *ring = &aggregate->ring[worker];
		u32 head = atomic_load_explicit(&ring->head, memory_order_acquire);
		u32 tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

		for (; tail != head; tail++) {
			deliver(&ring->note[tail % RING_NOTES], sink);
			atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
		}
	}
}

void aggregate_pace(struct aggregate *aggregate, u64 span_ns)
{
	u64 samples = AGGREGATE_SAMPLES * span_ns / SL_NS_PER_SEC;

	for (u32 i = 0; i < aggregate->workers; i++) {
		struct ring *ring = &aggregate->ring[i];
		u64 allowed = atomic_load_explicit(&ring->allowed, memory_order_relaxed);
		u64 every = (allowed - ring->allowed_before) / (samples ? samples : 1) + 1;

		ring->allowed_before = allowed;
		atomic_store_explicit(&ring->every, every > 1 << 20 ? 1 << 20 : (u32)every,
				      memory_order_relaxed);
	}
}

u64 aggregate_lost(const struct aggregate *aggregate)
{
	u64 lost = 0;

	for (u32 i = 0; i < aggregate->workers; i++)
		lost += aggregate->ring[i].lost;
	return lost;
}
