// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * push_receive.c - push-downs that another node of the cluster began; see push.h.
 *
 * The other node has the refusals and decides on times and steps. This node checks its own bounds:
 * sources that are never pushed down, the number of sources, the source's part of the well-behaved
 * traffic, and well-behaved users behind it. The source need not have been seen here yet.
 */
#include "request/mitigation/push_private.h"

#include <stdio.h>
#include <string.h>

static enum push_refusal may_receive(struct push *push, const struct push_message *message,
				     bool known, const struct source_profile *profile, u64 now_ns)
{
	enum push_refusal refusal = push->callbacks.guard(push->callbacks.arg, &message->group,
							  &message->group, true, now_ns);

	if (refusal != PUSH_ALLOWED && refusal != PUSH_UNSEEN)
		return refusal;
	if (!known && push->used >= push->limits.max_sources)
		return PUSH_MAX_SOURCES;
	if (!known && push_is_large_share(push, profile))
		return PUSH_SHARE;
	return push_may_take(&message->step, profile) ? PUSH_ALLOWED : PUSH_USERS;
}

static void fill(struct push *push, const struct push_message *message,
		 const struct source_profile *profile, u64 now_ns, struct push_entry *entry)
{
	u64 most_ns = now_ns + PUSH_LEASE_NS;

	snprintf(entry->node, sizeof(entry->node), "%s", message->node);
	snprintf(entry->rule, sizeof(entry->rule), "%s", message->rule);
	entry->steps[0] = message->step;
	entry->def.step_count = 1;
	entry->until_ns = message->until_ns < most_ns ? message->until_ns : most_ns;
	/* Unbounded: the other node decides on the end. */
	entry->def.max_ns = ~0ULL - entry->began_ns;
	entry->rate = message->step.rate;
	if (message->step.kind == SL_PUSH_LIMIT)
		entry->rate = push_limit_rate(push, &message->step.rate, profile);
	entry->shadow = push->limits.mode == PUSH_MODE_SHADOW;
}

static int put(struct push *push, const struct push_entry *entry)
{
	struct push_down down = { .src = entry->group,
				  .kind = entry->steps[0].kind,
				  .until_ns = entry->until_ns,
				  .note = push_note(entry) };

	if (down.kind == SL_PUSH_LIMIT)
		down.rate = entry->rate;
	return entry->shadow ? 0 : push->callbacks.put(push->callbacks.arg, &down);
}

enum push_refusal push_receive(struct push *push, const struct push_message *message, u64 now_ns)
{
	struct push_entry *known = push_lookup(push, &message->group), entry = { .step = 0 };
	struct source_profile profile;
	enum push_refusal refusal;

	if (push->limits.mode == PUSH_MODE_OFF || message->until_ns <= now_ns ||
	    (known && !known->node[0]))
		return PUSH_ALLOWED;
	push->callbacks.profile(push->callbacks.arg, &message->group, now_ns, &profile);
	refusal = may_receive(push, message, known, &profile, now_ns);
	entry.group = message->group;
	entry.began_ns = entry.changed_ns = entry.abuse_ns = now_ns;
	if (known)
		entry = *known;
	fill(push, message, &profile, now_ns, &entry);
	if (refusal == PUSH_ALLOWED && put(push, &entry) < 0)
		refusal = PUSH_FAILED;
	if (refusal != PUSH_ALLOWED) {
		if (known)
			push_finish(push, known, refusal);
		push->stats.refused[refusal]++;
		return refusal;
	}
	if (known) {
		*known = entry;
		return PUSH_ALLOWED;
	}
	known = push_take(push, &entry);
	if (known)
		push_report(push, known, PUSH_BEGAN, PUSH_ALLOWED);
	else if (!entry.shadow)
		push->callbacks.del(push->callbacks.arg, &entry.group);
	return PUSH_ALLOWED;
}

void push_end(struct push *push, const struct sl_prefix *group, bool theirs, u64 now_ns)
{
	struct push_entry *entry = push_lookup(push, group);

	if (!entry || (theirs && !entry->node[0]))
		return;
	if (!theirs)
		offense_forget_group(&push->offenses, offense_hash(push->seed, group, 0, 0));
	push_finish(push, entry, PUSH_ALLOWED);
}
