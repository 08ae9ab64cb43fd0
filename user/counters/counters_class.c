// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * counters_class.c - classes: the limit of an entry of the table, in two bytes.
 *
 * A class is a struct spec_def in the file, and a struct spec made of it in memory. It is looked up
 * for every bucket state of every request, by a hash of its def, without a lock; creating one takes
 * the lock. At most 65535 exist, and a part of these for limits in requests; classes that are no
 * longer in use make room for others:
 *
 * The sweep of the table notes which classes have entries. A class that at the end of a
 * round has none, and was not looked up since the round began, is removed from the look-up
 * (CLASS_LEAVING). A thread may have found it just before and not have written its entry yet;
 * but that thread has locked its sets, and the sweep locks each set in turn. So if a second round
 * finds no entry either, there will be none, and the number is free.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "counters/counters_file.h"

enum class_state { CLASS_FREE, CLASS_USED, CLASS_LEAVING };

#define SLOTS (2U * COUNTERS_CLASSES)
#define SLOT_GONE (~0U)

static u64 mix(u64 x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

static u32 hash_of(const struct spec_def *def)
{
	u64 bucket_state[sizeof(*def) / sizeof(u64)], hash = 0x9e3779b97f4a7c15ULL;

	memcpy(bucket_state, def, sizeof(bucket_state));
	for (size_t i = 0; i < sizeof(bucket_state) / sizeof(*bucket_state); i++)
		hash = mix(hash ^ bucket_state[i]);
	return hash;
}

static u16 find(const struct counters *counters, const struct spec_def *def, u32 hash)
{
	const struct counters_classes *c = counters->classes;

	for (u32 i = 0, at = hash; i < SLOTS; i++, at++) {
		u32 slot = __atomic_load_n(&c->slot[at % SLOTS], __ATOMIC_ACQUIRE);

		if (!slot)
			return 0;
		if (slot != SLOT_GONE && !memcmp(&counters->def[slot], def, sizeof(*def)))
			return slot;
	}
	return 0;
}

static void put_in_slots(struct counters *counters, u16 class)
{
	struct counters_classes *c = counters->classes;
	u32 at = hash_of(&counters->def[class]);

	while (c->slot[at % SLOTS] && c->slot[at % SLOTS] != SLOT_GONE)
		at++;
	c->in_slots += !c->slot[at % SLOTS];
	__atomic_store_n(&c->slot[at % SLOTS], (u32) class, __ATOMIC_RELEASE);
}

/* A free number, or that of a class that is leaving; 0: all are in use. */
static u16 number_for(struct counters *counters, const struct spec_def *def)
{
	struct counters_classes *c = counters->classes;

	for (u32 i = 1; i < COUNTERS_CLASSES; i++)
		if (c->state[i] == CLASS_LEAVING && !memcmp(&counters->def[i], def, sizeof(*def)))
			return i;
	for (u32 i = 1; i < COUNTERS_CLASSES; i++) {
		u32 at = 1 + (c->next + i) % (COUNTERS_CLASSES - 1);

		if (c->state[at] != CLASS_FREE)
			continue;
		c->next = at;
		return at;
	}
	return 0;
}

/* Deleted slots count as used, since a search passes over them. */
static bool slots_have_room(const struct counters_classes *c)
{
	return c->in_slots < SLOTS / 4 * 3;
}

/*
 * A scale of 0 marks an invalid class, in case the process is killed here: it is written last, as
 * the compiler keeps the order.
 */
static void keep(struct counters *counters, u16 class, const struct spec_def *def)
{
	struct spec_def *to = &counters->def[class], hidden = *def;

	to->scale = hidden.scale = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*to = hidden;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	to->scale = def->scale;
}

/*
 * Requests may have any rates, so the classes of a caller, and those of all callers, are bounded.
 */
static bool may_have_more(const struct counters_classes *c, u16 caller)
{
	return !caller || (c->made_for[caller] < COUNTERS_CLASSES_CALLER &&
			   c->made_for[0] < COUNTERS_CLASSES_CALLERS);
}

static void set_caller(struct counters_classes *c, u16 class, u16 caller)
{
	u16 was = c->caller[class];

	if (was) {
		c->made_for[was]--;
		c->made_for[0]--;
	}
	if (caller) {
		c->made_for[caller]++;
		c->made_for[0]++;
	}
	c->caller[class] = caller;
}

static u16 make(struct counters *counters, const struct spec_def *def, u16 caller)
{
	struct counters_classes *c = counters->classes;
	struct spec *spec;
	u16 class = may_have_more(c, caller) && slots_have_room(c) ? number_for(counters, def) : 0;

	if (!class)
		return 0;
	if (c->state[class] == CLASS_FREE) {
		spec = malloc(sizeof(*spec));
		if (!spec || spec_make_def(def, spec, NULL)) {
			free(spec);
			return 0;
		}
		keep(counters, class, def);
		__atomic_store_n(&c->spec[class], spec, __ATOMIC_RELEASE);
	}
	c->state[class] = CLASS_USED;
	set_caller(c, class, caller);
	if (c->most < class)
		__atomic_store_n(&c->most, class, __ATOMIC_RELAXED);
	put_in_slots(counters, class);
	return class;
}

u16 counters_class(struct counters *counters, const struct spec_def *def, u16 caller,
		   const struct spec **ret_spec)
{
	struct counters_classes *c = counters->classes;
	u32 hash = hash_of(def);
	u16 class = find(counters, def, hash);

	if (!class) {
		pthread_mutex_lock(&c->lock);
		class = find(counters, def, hash);
		if (!class)
			class = make(counters, def, caller);
		pthread_mutex_unlock(&c->lock);
	}
	if (!class)
		return 0;
	if (!__atomic_load_n(&c->touched[class], __ATOMIC_RELAXED))
		__atomic_store_n(&c->touched[class], 1, __ATOMIC_RELAXED);
	*ret_spec = counters_spec(counters, class);
	return class;
}

static void take_from_slots(struct counters *counters, u16 class)
{
	struct counters_classes *c = counters->classes;
	u32 at = hash_of(&counters->def[class]);

	while (c->slot[at % SLOTS] != class)
		at++;
	/* The last slots of a run can be freed at once. */
	if (c->slot[(at + 1) % SLOTS]) {
		__atomic_store_n(&c->slot[at % SLOTS], SLOT_GONE, __ATOMIC_RELEASE);
		return;
	}
	do {
		__atomic_store_n(&c->slot[at % SLOTS], 0, __ATOMIC_RELEASE);
		c->in_slots--;
		at--;
	} while (c->slot[at % SLOTS] == SLOT_GONE);
}

bool counters_classes_touched(const struct counters *counters)
{
	const struct counters_classes *c = counters->classes;

	for (u32 i = 1; i <= __atomic_load_n(&c->most, __ATOMIC_RELAXED); i++)
		if (__atomic_load_n(&c->touched[i], __ATOMIC_RELAXED))
			return true;
	return false;
}

bool counters_classes_reclaim(struct counters *counters)
{
	struct counters_classes *c = counters->classes;
	bool any = false;

	pthread_mutex_lock(&c->lock);
	for (u32 i = 1; i < COUNTERS_CLASSES; i++) {
		bool idle = !c->seen[i] && !__atomic_load_n(&c->touched[i], __ATOMIC_RELAXED);

		any |= c->state[i] != CLASS_FREE;
		c->seen[i] = 0;
		__atomic_store_n(&c->touched[i], 0, __ATOMIC_RELAXED);
		if (c->state[i] == CLASS_USED && idle) {
			take_from_slots(counters, i);
			set_caller(c, i, 0);
			c->state[i] = CLASS_LEAVING;
		} else if (c->state[i] == CLASS_LEAVING && idle) {
			keep(counters, i, &(struct spec_def){ 0 });
			free((void *)c->spec[i]);
			__atomic_store_n(&c->spec[i], NULL, __ATOMIC_RELAXED);
			c->state[i] = CLASS_FREE;
		} else if (c->state[i] == CLASS_LEAVING) {
			c->state[i] = CLASS_USED;
			put_in_slots(counters, i);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return any;
}

/* Loads the classes in the file, from an earlier process or a converted file. */
static int take_over(struct counters *counters)
{
	struct counters_classes *c = counters->classes;

	for (u32 i = 1; i < COUNTERS_CLASSES; i++) {
		struct spec_def *def = &counters->def[i];
		struct spec *spec;

		if (!def->scale)
			continue;
		spec = malloc(sizeof(*spec));
		if (!spec)
			return -ENOMEM;
		if (spec_make_def(def, spec, NULL) || find(counters, def, hash_of(def))) {
			/* A class of a damaged page. The first sweep removes its entries. */
			free(spec);
			def->scale = 0;
			continue;
		}
		c->spec[i] = spec;
		c->state[i] = CLASS_USED;
		c->most = i;
		put_in_slots(counters, i);
	}
	return 0;
}

int counters_classes_open(struct counters *counters, struct sl_err *err)
{
	counters->classes = calloc(1, sizeof(*counters->classes));
	if (!counters->classes)
		return sl_err_set(err, ENOMEM, "no memory for the classes of limits");
	pthread_mutex_init(&counters->classes->lock, NULL);
	counters->classes->slot = calloc(SLOTS, sizeof(u32));
	if (!counters->classes->slot || take_over(counters))
		return sl_err_set(err, ENOMEM, "no memory for the classes of limits");
	return 0;
}

void counters_classes_close(struct counters *counters)
{
	if (!counters->classes)
		return;
	for (u32 i = 0; i < COUNTERS_CLASSES; i++)
		free((void *)counters->classes->spec[i]);
	free(counters->classes->slot);
	pthread_mutex_destroy(&counters->classes->lock);
	free(counters->classes);
	counters->classes = NULL;
}
