/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bus_batch.h - a batch of one node: messages under one head, with one signature.
 *
 *     {"node":"a","boot_us":N,"number":N,"sent_us":N,"sync_us":N,"version":"0.1.0","bye":false,
 *      "messages":[{"kind":"block","until_us":N,"body":{...}}, ...]}
 *
 * The signature covers the cluster's prefix and these bytes as sent: no canonical form of JSON is
 * needed, and a batch of one cluster is invalid in another cluster with the same secret. A batch is
 * parsed only after its signature has been verified.
 *
 * Times are by Redis' clock, which all nodes share, in microseconds since 1970.
 */
#ifndef SLUICE_BUS_BATCH_H
#define SLUICE_BUS_BATCH_H

#include <event2/buffer.h>
#include <jansson.h>

#include "cluster/bus/cluster.h"

#define BUS_SIGNATURE 32
#define BUS_BODY_MAX (64U << 10) /* bytes of a message's body */
#define BUS_BATCH_MAX (192U << 10)
#define BUS_MESSAGES_MAX 512			    /* in one batch */
#define BUS_VALID_MAX_US (400ULL * 86400 * 1000000) /* longer validity is malformed */

struct bus_head {
	char node[CLUSTER_NODE_MAX + 1];
	char version[32];
	u64 boot_us; /* start of the daemon: a later value is a newer daemon */
	u64 number;  /* from 1, increases with each batch */
	u64 sent_us;
	u64 sync_us;
	bool bye; /* its last batch */
};

/* The signature also covers the cluster's "PREFIX". 0 or -ENOMEM. */
int bus_sign(const struct cluster_keys *keys, const char *prefix, const void *text, size_t len,
	     u8 ret[BUS_SIGNATURE]);

/* Writes the head and "messages":[ into `out`; messages and the end follow. */
void bus_batch_begin(struct evbuffer *out, const struct bus_head *head);
void bus_batch_add(struct evbuffer *out, bool first, const char *kind, u64 until_us,
		   const char *body);
void bus_batch_end(struct evbuffer *out);

enum bus_verdict {
	BUS_GOOD,
	BUS_FORGED,    /* not signed with the cluster's key */
	BUS_MALFORMED, /* signed but invalid: perhaps of another version */
	/* bus_peers.h */
	BUS_OLD,
	BUS_AHEAD,    /* sent too long ago; sent in the future */
	BUS_REPEATED, /* a number received before, or from an earlier daemon */
	BUS_CROWD,    /* the table of nodes is full */
	BUS_FLOOD,    /* more batches a second than a node sends */
	BUS_VERDICT_COUNT,
};
const char *bus_verdict_name(enum bus_verdict verdict);

/* *ret_messages: the array, a new reference, if the batch is valid. */
enum bus_verdict bus_batch_open(const struct cluster_keys *keys, const char *prefix,
				const char *text, size_t len, const void *signature,
				size_t signature_len, struct bus_head *ret_head,
				json_t **ret_messages);

/*
 * Reads an element of the array; false if it is not a message. Results are valid as long as the
 * array.
 */
bool bus_message_read(const json_t *message, const char **ret_kind, u64 *ret_until_us,
		      const json_t **ret_body);

#endif
