/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus_batch.h - what one node says at once: messages under one head, and a signature of all.
 *
 *     {"node":"a","boot_us":N,"number":N,"sent_us":N,"sync_us":N,"version":"0.1.0","bye":false,
 *      "messages":[{"kind":"block","until_us":N,"body":{...}}, ...]}
 *
 * Signed are these bytes as they are, after the cluster's prefix: nobody has to write JSON the
 * same way twice, and what was said in one cluster is nothing in another that has the same
 * secret. A batch is looked at only after its signature has been found good.
 *
 * Times are the store's, in microseconds since 1970: the one clock that all nodes share.
 */
#ifndef SLUICE_BUS_BATCH_H
#define SLUICE_BUS_BATCH_H

#include <event2/buffer.h>
#include <jansson.h>

#include "cluster/bus/cluster.h"

#define BUS_SIGNATURE 32
#define BUS_BODY_MAX (64U << 10)	/* bytes of a message's body */
#define BUS_BATCH_MAX (192U << 10)
#define BUS_MESSAGES_MAX 512		/* in one batch */
#define BUS_VALID_MAX_US (400ULL * 86400 * 1000000)	/* longer is no time that a node would say */

struct bus_head {
	char node[CLUSTER_NODE_MAX + 1];
	char version[32];
	u64 boot_us;		/* when the node began: a later one is a newer daemon */
	u64 number;		/* from 1, one up with each batch */
	u64 sent_us;
	u64 sync_us;
	bool bye;		/* its last */
};

/* "PREFIX" of the cluster is signed, too. 0 or -ENOMEM. */
int bus_sign(const struct cluster_keys *keys, const char *prefix, const void *text, size_t len,
	     u8 ret[BUS_SIGNATURE]);

/* Head and "messages":[ into `out`; then each message, and the end. */
void bus_batch_begin(struct evbuffer *out, const struct bus_head *head);
void bus_batch_add(struct evbuffer *out, bool first, const char *kind, u64 until_us,
		   const char *body);
void bus_batch_end(struct evbuffer *out);

enum bus_verdict {
	BUS_GOOD,
	BUS_FORGED,		/* not signed with our key */
	BUS_MALFORMED,		/* signed, and makes no sense: another version's, perhaps */
	/* bus_peers.h */
	BUS_OLD, BUS_AHEAD,	/* sent too long ago; later than now */
	BUS_REPEATED,		/* its number was had, or it is of a daemon before */
	BUS_CROWD,		/* more nodes than there is room for */
	BUS_FLOOD,		/* more batches than a node sends */
	BUS_VERDICT_COUNT,
};
const char *bus_verdict_name(enum bus_verdict verdict);

/* *ret_messages: the array, a new reference, where it is good. */
enum bus_verdict bus_batch_open(const struct cluster_keys *keys, const char *prefix,
				const char *text, size_t len, const void *signature,
				size_t signature_len, struct bus_head *ret_head,
				json_t **ret_messages);

/* A message of the array: false where it is none. What it returns lives as long as the array. */
bool bus_message_read(const json_t *message, const char **ret_kind, u64 *ret_until_us,
		      const json_t **ret_body);

#endif
