// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* undecided.c - see undecided.h. */
#include "request/engine/undecided.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "request/engine/observe.h"

#define AGAIN_NS (60 * SL_NS_PER_SEC)

static bool is_old(const struct undecided_kind *kind, u64 now_ns)
{
	return !kind->at_ns || now_ns - kind->at_ns >= AGAIN_NS;
}

/* The place of a text: its own, else one whose minute is over. NULL: none is free. */
static struct undecided_kind *place_of(struct undecided *undecided, struct undecided_kind *first,
				       u64 text, u64 now_ns)
{
	struct undecided_kind *free = is_old(first, now_ns) ? first : NULL;

	if (first->text == text)
		return first;
	for (u32 i = 0; i < UNDECIDED_KINDS; i++) {
		struct undecided_kind *kind = &undecided->other[i];

		if (kind->text == text)
			return kind;
		if (!free && is_old(kind, now_ns))
			free = kind;
	}
	return free;
}

/* Whether a line is due; *ret_more: how many of its kind came since the last one. */
static bool is_due(struct undecided *undecided, enum request_api api, u32 reason,
		   const char *detail, u64 now_ns, u64 *ret_more)
{
	u64 text = hash_bytes(hash_seed(), (u64)api << 8 | reason, detail, strlen(detail));
	struct undecided_kind *kind =
		place_of(undecided, &undecided->first[api][reason], text, now_ns);

	if (!kind)
		return false;
	if (!is_old(kind, now_ns)) {
		kind->more++;
		return false;
	}
	*ret_more = kind->text == text ? kind->more : 0;
	*kind = (struct undecided_kind){ .text = text, .at_ns = now_ns };
	return true;
}

bool undecided_log(struct undecided *undecided, enum request_api api, u32 reason, const char *words,
		   const char *detail, u64 now_ns)
{
	char also[64] = "";
	u64 more = 0;
	bool due;

	pthread_mutex_lock(&undecided->lock);
	due = is_due(undecided, api, reason, detail, now_ns, &more);
	pthread_mutex_unlock(&undecided->lock);
	if (more)
		snprintf(also, sizeof(also), " (%llu more since the last such line)", more);
	if (due)
		log_warn("http: %s: %s: %s%s", request_api_name(api), words, detail, also);
	return due;
}

void undecided_note(struct engine_thread *thread, enum request_api api,
		    enum undecided_reason reason, const char *detail)
{
	struct undecided *undecided = &thread->engine->undecided;
	struct undecided_seen *seen = &undecided->seen;
	u64 now_ns = clock_mono_ns();

	pthread_mutex_lock(&undecided->lock);
	seen->count[api][reason]++;
	seen->at_ns = now_ns;
	seen->api = api;
	seen->reason = reason;
	snprintf(seen->detail, sizeof(seen->detail), "%s", detail);
	pthread_mutex_unlock(&undecided->lock);
	undecided_log(undecided, api, reason,
		      "request not decided, so that its proxy lets it pass or fails it", detail,
		      now_ns);
}

void undecided_read(struct undecided *undecided, struct undecided_seen *ret)
{
	pthread_mutex_lock(&undecided->lock);
	*ret = undecided->seen;
	pthread_mutex_unlock(&undecided->lock);
}

const char *undecided_name(enum undecided_reason reason)
{
	static const char *const name[UNDECIDED_COUNT] = {
#define LABEL(id, label) [id] = label,
		UNDECIDED_REASONS(LABEL)
	};

	return name[reason];
}
