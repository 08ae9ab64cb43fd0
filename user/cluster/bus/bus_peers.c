// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bus_peers.c - see bus_peers.h. */
#include "cluster/bus/bus_peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* If Redis' clock differs from this machine's by more than this, ages are not checked by it. */
#define CLOCKS_APART_US (3600ULL * 1000000)
#define TWICE_NS (600 * SL_NS_PER_SEC)

struct peer {
	u32 hash; /* of the name */
	struct cluster_peer shown;
	u64 boot_us, number;
	u64 sync_ns;
	bool gone;	     /* it sent goodbye */
	u64 second, batches; /* batches within that second */
	u64 older_ns;	     /* arrival of a batch of an earlier daemon, and its boot */
	u64 older_boot_us;
	u64 twice_ns; /* when the duplicate name was logged */
};

struct bus_peers {
	struct peer peer[BUS_PEERS_MAX];
	u32 count;
};

int bus_peers_new(struct bus_peers **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void bus_peers_free(struct bus_peers *peers)
{
	free(peers);
}

/* FNV-1a; names come from the administrator. */
static u32 hash_of(const char *name)
{
	u32 hash = 2166136261U;

	while (*name)
		hash = (hash ^ (u8)*name++) * 16777619U;
	return hash;
}

static bool is_alive(const struct peer *peer, u64 mono_ns)
{
	u64 silent_ns = peer->sync_ns * 10;

	if (silent_ns < BUS_SILENT_LEAST_NS)
		silent_ns = BUS_SILENT_LEAST_NS;
	return !peer->gone && mono_ns < peer->shown.received_ns + silent_ns;
}

static struct peer *find(struct bus_peers *peers, const char *node, u32 hash)
{
	for (u32 i = 0; i < peers->count; i++)
		if (peers->peer[i].hash == hash && !strcmp(peers->peer[i].shown.node, node))
			return &peers->peer[i];
	return NULL;
}

/* A free entry, or the entry of the node that is not alive and has been silent longest. */
static struct peer *make_room(struct bus_peers *peers, u64 mono_ns)
{
	struct peer *oldest = NULL;

	if (peers->count < BUS_PEERS_MAX)
		return &peers->peer[peers->count++];
	for (u32 i = 0; i < peers->count; i++)
		if (!is_alive(&peers->peer[i], mono_ns) &&
		    (!oldest || peers->peer[i].shown.received_ns < oldest->shown.received_ns))
			oldest = &peers->peer[i];
	return oldest;
}

static enum bus_verdict check_time(const struct bus_head *head, const struct bus_time *now)
{
	if (head->sent_us + BUS_FRESH_US < now->store_us ||
	    head->sent_us + CLOCKS_APART_US < now->own_utc_us)
		return BUS_OLD;
	return head->sent_us > now->store_us + BUS_AHEAD_US ? BUS_AHEAD : BUS_GOOD;
}

/* A replay comes once; two daemons with one name keep sending. Logged at intervals. */
static bool check_twice(struct peer *peer, const struct bus_head *head, u64 mono_ns)
{
	bool again = peer->older_boot_us == head->boot_us && head->boot_us != peer->boot_us &&
		     mono_ns - peer->older_ns < BUS_SILENT_LEAST_NS &&
		     (!peer->twice_ns || mono_ns - peer->twice_ns >= TWICE_NS);

	if (head->boot_us < peer->boot_us) {
		peer->older_boot_us = head->boot_us;
		peer->older_ns = mono_ns;
	}
	if (again)
		peer->twice_ns = mono_ns;
	return again;
}

/* By sending time, because a node that was unavailable reads many batches at once. */
static bool check_rate(struct peer *peer, u64 sent_us)
{
	u64 second = sent_us / 1000000;

	if (peer->second != second) {
		peer->second = second;
		peer->batches = 0;
	}
	return ++peer->batches <= BUS_BATCHES_PER_S;
}

static enum bus_verdict check_number(struct peer *peer, const struct bus_head *head, u64 mono_ns,
				     bool *ret_twice)
{
	if (head->boot_us < peer->boot_us ||
	    (head->boot_us == peer->boot_us && head->number <= peer->number)) {
		*ret_twice = check_twice(peer, head, mono_ns);
		return BUS_REPEATED;
	}
	return check_rate(peer, head->sent_us) ? BUS_GOOD : BUS_FLOOD;
}

enum bus_verdict bus_peers_note(struct bus_peers *peers, const struct bus_head *head,
				const struct bus_time *now, bool *ret_joined, bool *ret_twice)
{
	u64 age_us = now->store_us > head->sent_us ? now->store_us - head->sent_us : 0;
	u32 hash = hash_of(head->node);
	struct peer *peer = find(peers, head->node, hash);
	enum bus_verdict verdict = check_time(head, now);
	bool there = peer && is_alive(peer, now->mono_ns) && peer->boot_us == head->boot_us;

	*ret_joined = *ret_twice = false;
	if (verdict == BUS_GOOD && peer)
		verdict = check_number(peer, head, now->mono_ns, ret_twice);
	if (verdict != BUS_GOOD) {
		if (peer)
			peer->shown.refused++;
		return verdict;
	}
	if (!peer) {
		peer = make_room(peers, now->mono_ns);
		if (!peer)
			return BUS_CROWD;
		*peer = (struct peer){ .hash = hash };
		strcpy(peer->shown.node, head->node);
	}
	peer->boot_us = head->boot_us;
	peer->number = head->number;
	peer->sync_ns = head->sync_us > 10000000 ? 10 * SL_NS_PER_SEC : head->sync_us * 1000;
	peer->gone = head->bye;
	peer->shown.received_ns = age_us * 1000 < now->mono_ns ? now->mono_ns - age_us * 1000 : 0;
	peer->shown.lag_ns = age_us * 1000;
	peer->shown.messages++;
	memcpy(peer->shown.version, head->version, sizeof(peer->shown.version));
	*ret_joined = !there && is_alive(peer, now->mono_ns);
	return BUS_GOOD;
}

size_t bus_peers_list(const struct bus_peers *peers, u64 mono_ns, struct cluster_peer *ret,
		      size_t max)
{
	size_t count = 0;

	for (u32 i = 0; i < peers->count && count < max; i++) {
		const struct peer *peer = &peers->peer[i];

		if (mono_ns - peer->shown.received_ns >= BUS_SHOWN_NS)
			continue;
		ret[count] = peer->shown;
		ret[count].left = peer->gone;
		ret[count++].alive = is_alive(peer, mono_ns);
	}
	return count;
}

u32 bus_peers_count(const struct bus_peers *peers)
{
	return peers->count;
}

u32 bus_peers_alive(const struct bus_peers *peers, u64 mono_ns)
{
	u32 count = 0;

	for (u32 i = 0; i < peers->count; i++)
		count += is_alive(&peers->peer[i], mono_ns);
	return count;
}
