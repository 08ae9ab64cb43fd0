// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * store_class.c - classes: which limit an entry of the table is of, in two bytes.
 *
 * A class is a struct spec_def in the store's file, and a struct spec made of it in memory. It
 * is looked up for every word of every call, by a hash of its def, without a lock; making one
 * takes the lock. 65535 there can be, and so many for limits that callers bring; rates that are no longer in use make room for others:
 *
 * The sweep, going round the table, notes which classes have entries. A class that at the end
 * of a round has none, and that nobody looked up since it began, is taken out of the look-up
 * (CLASS_LEAVING). Someone may have found it just before, and be about to write an entry of it;
 * but he has his sets locked, and the sweep locks each set in turn. So if a second round finds
 * no entry either, there will be none, and the number is free.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "counters/store_file.h"

enum class_state { CLASS_FREE, CLASS_USED, CLASS_LEAVING };

#define SLOTS (2U * STORE_CLASSES)
#define SLOT_GONE (~0U)

static u64 mix(u64 x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

static u32 hash_of(const struct spec_def *def)
{
	u64 word[sizeof(*def) / sizeof(u64)], hash = 0x9e3779b97f4a7c15ULL;

	memcpy(word, def, sizeof(word));
	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
		hash = mix(hash ^ word[i]);
	return hash;
}

static u16 find(const struct store *store, const struct spec_def *def, u32 hash)
{
	const struct store_classes *c = store->classes;

	for (u32 i = 0, at = hash; i < SLOTS; i++, at++) {
		u32 slot = __atomic_load_n(&c->slot[at % SLOTS], __ATOMIC_ACQUIRE);

		if (!slot)
			return 0;
		if (slot != SLOT_GONE && !memcmp(&store->def[slot], def, sizeof(*def)))
			return slot;
	}
	return 0;
}

static void put_in_slots(struct store *store, u16 class)
{
	struct store_classes *c = store->classes;
	u32 at = hash_of(&store->def[class]);

	while (c->slot[at % SLOTS] && c->slot[at % SLOTS] != SLOT_GONE)
		at++;
	c->in_slots += !c->slot[at % SLOTS];
	__atomic_store_n(&c->slot[at % SLOTS], (u32)class, __ATOMIC_RELEASE);
}

/* The number of a class that is leaving, or of none; 0: all are in use. */
static u16 number_for(struct store *store, const struct spec_def *def)
{
	struct store_classes *c = store->classes;

	for (u32 i = 1; i < STORE_CLASSES; i++)
		if (c->state[i] == CLASS_LEAVING &&
		    !memcmp(&store->def[i], def, sizeof(*def)))
			return i;
	for (u32 i = 1; i < STORE_CLASSES; i++) {
		u32 at = 1 + (c->next + i) % (STORE_CLASSES - 1);

		if (c->state[at] != CLASS_FREE)
			continue;
		c->next = at;
		return at;
	}
	return 0;
}

/* Slots that were given up are found empty only by going over them all. */
static bool slots_have_room(const struct store_classes *c)
{
	return c->in_slots < SLOTS / 4 * 3;
}

/*
 * The file is made without blocks for classes (65535 take 2.6 MB, most rule sets a page): they
 * are allocated when the first class of a page is. A full disk so makes no class, and no SIGBUS.
 */
static bool has_block(struct store *store, u16 class)
{
	const char *map = store->map;

	if (store->fd < 0)
		return true;
	return !posix_fallocate(store->fd, (char *)&store->def[class] - map,
				sizeof(struct spec_def)) &&
	       !posix_fallocate(store->fd, (char *)&store->def_copy[class] - map,
				sizeof(struct store_def_copy));
}

/*
 * The copy first: a whole copy is what counts when the file is opened. A scale of 0 is that of no
 * class, should this be the last that we do.
 */
static void keep(struct store *store, u16 class, const struct spec_def *def)
{
	struct store_def_copy *copy = &store->def_copy[class];

	copy->def = *def;
	copy->check = store_def_check(def);
	store->def[class].scale = 0;
	store->def[class] = *def;
}

/* Rates that requests bring are any: so many of a caller's, and never all there can be. */
static bool may_have_more(const struct store_classes *c, u16 caller)
{
	return !caller || (c->made_for[caller] < STORE_CLASSES_CALLER &&
			   c->made_for[0] < STORE_CLASSES_CALLERS);
}

static void set_caller(struct store_classes *c, u16 class, u16 caller)
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

static u16 make(struct store *store, const struct spec_def *def, u16 caller)
{
	struct store_classes *c = store->classes;
	struct spec *spec;
	u16 class = may_have_more(c, caller) && slots_have_room(c) ? number_for(store, def) : 0;

	if (!class)
		return 0;
	if (c->state[class] == CLASS_FREE) {
		spec = malloc(sizeof(*spec));
		if (!spec || spec_make_def(def, spec, NULL) || !has_block(store, class)) {
			free(spec);
			return 0;
		}
		keep(store, class, def);
		__atomic_store_n(&c->spec[class], spec, __ATOMIC_RELEASE);
	}
	c->state[class] = CLASS_USED;
	set_caller(c, class, caller);
	if (c->most < class)
		c->most = class;
	put_in_slots(store, class);
	return class;
}

u16 store_class(struct store *store, const struct spec_def *def, u16 caller,
		const struct spec **ret_spec)
{
	struct store_classes *c = store->classes;
	u32 hash = hash_of(def);
	u16 class = find(store, def, hash);

	if (!class) {
		pthread_mutex_lock(&c->lock);
		class = find(store, def, hash);
		if (!class)
			class = make(store, def, caller);
		pthread_mutex_unlock(&c->lock);
	}
	if (!class)
		return 0;
	if (!__atomic_load_n(&c->touched[class], __ATOMIC_RELAXED))
		__atomic_store_n(&c->touched[class], 1, __ATOMIC_RELAXED);
	*ret_spec = store_spec(store, class);
	return class;
}

static void take_from_slots(struct store *store, u16 class)
{
	struct store_classes *c = store->classes;
	u32 at = hash_of(&store->def[class]);

	while (c->slot[at % SLOTS] != class)
		at++;
	/* The end of a run of slots can be freed outright. */
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

void store_classes_reclaim(struct store *store)
{
	struct store_classes *c = store->classes;

	pthread_mutex_lock(&c->lock);
	for (u32 i = 1; i < STORE_CLASSES; i++) {
		bool idle = !c->seen[i] && !__atomic_load_n(&c->touched[i], __ATOMIC_RELAXED);

		c->seen[i] = 0;
		__atomic_store_n(&c->touched[i], 0, __ATOMIC_RELAXED);
		if (c->state[i] == CLASS_USED && idle) {
			take_from_slots(store, i);
			set_caller(c, i, 0);
			c->state[i] = CLASS_LEAVING;
		} else if (c->state[i] == CLASS_LEAVING && idle) {
			keep(store, i, &(struct spec_def){ 0 });
			free((void *)c->spec[i]);
			__atomic_store_n(&c->spec[i], NULL, __ATOMIC_RELAXED);
			c->state[i] = CLASS_FREE;
		} else if (c->state[i] == CLASS_LEAVING) {
			c->state[i] = CLASS_USED;
			put_in_slots(store, i);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* What is in the file already: by an earlier process, or moved over. */
static int take_over(struct store *store)
{
	struct store_classes *c = store->classes;

	for (u32 i = 1; i < STORE_CLASSES; i++) {
		struct spec_def *def = &store->def[i];
		struct spec *spec;

		if (!def->scale)
			continue;
		spec = malloc(sizeof(*spec));
		if (!spec)
			return -ENOMEM;
		if (spec_make_def(def, spec, NULL) || find(store, def, hash_of(def))) {
			/* Of a damaged page. Its entries are taken out by the first sweep. */
			free(spec);
			def->scale = 0;
			continue;
		}
		if (has_block(store, i)) {
			store->def_copy[i].def = *def;
			store->def_copy[i].check = store_def_check(def);
		}
		c->spec[i] = spec;
		c->state[i] = CLASS_USED;
		c->most = i;
		put_in_slots(store, i);
	}
	return 0;
}

int store_classes_open(struct store *store, struct sl_err *err)
{
	store->classes = calloc(1, sizeof(*store->classes));
	if (!store->classes)
		return sl_err_set(err, ENOMEM, "no memory for the classes of limits");
	pthread_mutex_init(&store->classes->lock, NULL);
	store->classes->slot = calloc(SLOTS, sizeof(u32));
	if (!store->classes->slot || take_over(store))
		return sl_err_set(err, ENOMEM, "no memory for the classes of limits");
	return 0;
}

void store_classes_lock(struct store *store, bool locked)
{
	if (locked)
		pthread_mutex_lock(&store->classes->lock);
	else
		pthread_mutex_unlock(&store->classes->lock);
}

void store_classes_close(struct store *store)
{
	if (!store->classes)
		return;
	for (u32 i = 0; i < STORE_CLASSES; i++)
		free((void *)store->classes->spec[i]);
	free(store->classes->slot);
	pthread_mutex_destroy(&store->classes->lock);
	free(store->classes);
	store->classes = NULL;
}
