// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_store_memory.c - the cluster store in this process, for any number of nodes: a table of
 * buckets, a clock that is set, and commands in flight. cluster_store_model.c does the charging.
 *
 * A command is carried out and gets its reply when its delay is over, by
 * cluster_store_memory_run(), in the order of those times; late where its deadline comes first. A
 * callback may send again. Tests and simulations use it; where memory ends, they end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cluster_store_memory.h"
#include "lib/cluster_store_model.h"

#define TABLE_LEAST 1024

struct flight {
	struct cluster_store_request *request;
	struct view *view;
	u64 due_us, late_us;
	bool late; /* reported as late */
	bool lost; /* its node was cut off when it sent the command */
	struct flight *next;
};

struct cluster_store_memory {
	u64 now_us, delay_us;
	struct cluster_store_entry **slot;
	u64 slots, entries;
	struct flight *first; /* in the order they were sent */
	struct view *view;
	u32 nodes;
};

struct view {
	struct cluster_store base;
	struct cluster_store_memory *memory;
	struct view *next;
	u32 node;
	bool cut, down;
	char name[64];
};

static struct view *view_of(struct cluster_store *base)
{
	return (struct view *)base;
}

/* ------------------------------------------------------------------ the table */

static u64 slot_of(const struct cluster_store_memory *memory, u64 key, u64 tag, u8 algo)
{
	return ((key ^ tag * 0x9e3779b97f4a7c15ULL) + algo) * 0xbf58476d1ce4e5b9ULL >> 20 &
	       (memory->slots - 1);
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void entry_free(struct cluster_store_entry *entry)
{
	cluster_store_entry_clear(entry);
	free(entry);
}

static void table_grow(struct cluster_store_memory *memory)
{
	struct cluster_store_entry **old = memory->slot;
	u64 old_slots = memory->slots;

	memory->slots = old_slots ? 2 * old_slots : TABLE_LEAST;
	memory->slot = must(calloc(memory->slots, sizeof(struct cluster_store_entry *)));
	memory->entries = 0;
	for (u64 i = 0; i < old_slots; i++) {
		for (struct cluster_store_entry *e = old[i], *next; e; e = next) {
			u64 slot = slot_of(memory, e->key, e->tag, e->algo);

			next = e->next;
			/* What has expired needs no room. */
			if (memory->now_us / 1000 > e->expires_ms) {
				entry_free(e);
				continue;
			}
			e->next = memory->slot[slot];
			memory->slot[slot] = e;
			memory->entries++;
		}
	}
	free(old);
}

static struct cluster_store_entry *entry_get(struct cluster_store_memory *memory,
					     const struct cluster_store_bucket *bucket)
{
	struct cluster_store_entry *e;
	u64 slot;

	if (memory->entries >= memory->slots)
		table_grow(memory);
	slot = slot_of(memory, bucket->key, bucket->tag, bucket->def.algo);
	for (e = memory->slot[slot]; e; e = e->next)
		if (e->key == bucket->key && e->tag == bucket->tag && e->algo == bucket->def.algo)
			return e;
	e = must(calloc(1, sizeof(*e)));
	e->key = bucket->key;
	e->tag = bucket->tag;
	e->algo = bucket->def.algo;
	e->next = memory->slot[slot];
	memory->slot[slot] = e;
	memory->entries++;
	return e;
}

void cluster_store_memory_lose(struct cluster_store_memory *memory)
{
	for (u64 i = 0; i < memory->slots; i++) {
		for (struct cluster_store_entry *e = memory->slot[i], *next; e; e = next) {
			next = e->next;
			entry_free(e);
		}
		memory->slot[i] = NULL;
	}
	memory->entries = 0;
}

/* ------------------------------------------------------------------ requests */

static void carry_out(struct cluster_store_memory *memory, struct flight *flight)
{
	struct cluster_store_entry *entry[CLUSTER_STORE_BUCKETS_MAX];
	struct cluster_store_request *request = flight->request;

	for (u32 i = 0; i < request->count; i++)
		entry[i] = entry_get(memory, &request->bucket[i]);
	request->now_us = memory->now_us;
	request->passed = cluster_store_model_request(entry, request->bucket, request->count,
						      flight->view->node, request->now_us);
}

static void answer(struct flight *flight, enum cluster_store_outcome outcome)
{
	if (!flight->late)
		flight->request->done(flight->request, outcome);
	else if (flight->request->late)
		flight->request->late(flight->request, outcome);
}

/* The one whose time is first and has come; NULL: none. */
static struct flight **next_due(struct cluster_store_memory *memory)
{
	struct flight **first = NULL;
	u64 best = memory->now_us;

	for (struct flight **at = &memory->first; *at; at = &(*at)->next) {
		const struct flight *f = *at;
		u64 when = !f->late && f->late_us < f->due_us ? f->late_us : f->due_us;

		if (when > best || (first && when == best))
			continue;
		first = at;
		best = when;
	}
	return first;
}

void cluster_store_memory_run(struct cluster_store_memory *memory)
{
	struct flight **at;

	while ((at = next_due(memory))) {
		struct flight *flight = *at;

		if (!flight->late && flight->late_us < flight->due_us) {
			flight->late = true;
			flight->request->done(flight->request, CLUSTER_STORE_LATE);
			continue;
		}
		*at = flight->next;
		if (!flight->lost)
			carry_out(memory, flight);
		/* A reply that is lost on its way back is late first, as seen from the node. */
		if ((flight->lost || flight->view->cut) && !flight->late) {
			flight->late = true;
			flight->request->done(flight->request, CLUSTER_STORE_LATE);
		}
		answer(flight,
		       flight->lost || flight->view->cut ? CLUSTER_STORE_DOWN : CLUSTER_STORE_DONE);
		free(flight);
	}
}

static u32 memory_slot(struct cluster_store *base, u64 tag)
{
	return 0;
}

static int memory_request(struct cluster_store *base, struct cluster_store_request *request)
{
	struct view *view = view_of(base);
	struct cluster_store_memory *memory = view->memory;
	struct flight *flight, **end;
	int err = cluster_store_request_check(request);
	struct cluster_store_rate rate;

	for (u32 i = 0; !err && i < request->count; i++)
		err = cluster_store_rate_make(&request->bucket[i].def, &rate);
	if (err)
		return err;
	if (view->down)
		return -EHOSTUNREACH;
	flight = must(calloc(1, sizeof(*flight)));
	flight->request = request;
	flight->view = view;
	flight->lost = view->cut;
	flight->due_us = memory->now_us + memory->delay_us;
	flight->late_us = memory->now_us + request->deadline_ns / 1000;
	if (flight->lost && flight->due_us <= flight->late_us)
		flight->due_us = flight->late_us + 1;
	for (end = &memory->first; *end; end = &(*end)->next)
		;
	*end = flight;
	return 0;
}

static bool memory_up(struct cluster_store *base, u32 slot)
{
	return !view_of(base)->down;
}

/* Commands in flight get their replies first. */
static void memory_free(struct cluster_store *base)
{
	struct view *view = view_of(base), **at = &view->memory->view;

	for (struct flight **f = &view->memory->first; *f;) {
		struct flight *flight = *f;

		if (flight->view != view) {
			f = &flight->next;
			continue;
		}
		*f = flight->next;
		answer(flight, CLUSTER_STORE_DOWN);
		free(flight);
	}
	while (*at != view)
		at = &(*at)->next;
	*at = view->next;
	free(view);
}

static const struct cluster_store_ops ops = {
	.slot_of = memory_slot,
	.send = memory_request,
	.up = memory_up,
	.free = memory_free,
};

/* ------------------------------------------------------------------ the store */

int cluster_store_memory_new(struct cluster_store_memory **ret)
{
	struct cluster_store_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	table_grow(memory);
	*ret = memory;
	return 0;
}

void cluster_store_memory_free(struct cluster_store_memory *memory)
{
	if (!memory)
		return;
	while (memory->view)
		memory_free(&memory->view->base);
	cluster_store_memory_lose(memory);
	free(memory->slot);
	free(memory);
}

/* The same name is the same node, as one that has restarted is. */
int cluster_store_memory_node(struct cluster_store_memory *memory, const char *node,
			      struct cluster_store **ret)
{
	struct view *view;

	if (strlen(node) >= sizeof(view->name))
		return -EINVAL;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->base.ops = &ops;
	view->memory = memory;
	view->node = memory->nodes;
	for (struct view *other = memory->view; other; other = other->next)
		if (!strcmp(other->name, node))
			view->node = other->node;
	if (view->node == memory->nodes)
		memory->nodes++;
	strcpy(view->name, node);
	view->next = memory->view;
	memory->view = view;
	*ret = &view->base;
	return 0;
}

void cluster_store_memory_set_time(struct cluster_store_memory *memory, u64 now_us)
{
	memory->now_us = now_us;
}

void cluster_store_memory_set_delay(struct cluster_store_memory *memory, u64 delay_us)
{
	memory->delay_us = delay_us;
}

void cluster_store_memory_cut(struct cluster_store *node, bool cut)
{
	view_of(node)->cut = cut;
}

void cluster_store_memory_down(struct cluster_store *node, bool down)
{
	view_of(node)->down = down;
}
