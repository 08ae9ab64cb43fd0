/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_def.h - the `cluster:` section of the configuration; part of the model (policy.h). */
#ifndef SLUICE_CLUSTER_DEF_H
#define SLUICE_CLUSTER_DEF_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

#define CLUSTER_NODE_MAX 63 /* bytes of a node's name: [A-Za-z0-9._-] */

enum redis_mode { REDIS_MODE_SINGLE, REDIS_MODE_SENTINEL, REDIS_MODE_CLUSTER, REDIS_MODE_RING };

/*
 * redis://[USER@]HOST[:PORT][/DB], rediss:// with TLS, unix:PATH; of an IPv6 address in brackets.
 */
struct redis_url {
	char *text; /* as written, without a password (one in it is refused) */
	char *host; /* a name or an address; a path where unix */
	u16 port;   /* default 6379, of a sentinel 26379 */
	bool unix_socket, tls;
	u32 database; /* 0 in cluster mode */
};

struct redis_def {
	struct redis_url *url; /* at least one; sentinel mode: the sentinels */
	size_t url_count;
	enum redis_mode mode;
	char *master;	     /* sentinel mode: the master's name; default "mymaster" */
	char *user;	     /* NULL: the default user */
	char *password_file; /* NULL: none; its first line is the password */
	char *ca, *cert,
		*key;	/* tls: {ca:, cert:, key:, name:}; NULL: the system's CAs, no certificate */
	char *tls_name; /* the name that the certificate must have; NULL: the host */
	char *prefix;	/* of every key; default "sluice:" */
	u32 wait;	/* replicas that must acknowledge a charge; default 0 */
};

struct cluster_def {
	struct redis_def redis;
	char *node;	   /* default: the host's name */
	char *secret_file; /* at least 32 bytes, for root alone: keys of hashes and signatures come
			      from it */
	u64 sync_ns;	   /* default 100 ms; 20 ms to 10 s */
	u64 deadline_ns;   /* default 5 ms; 1 ms to 1 s: of a response that waits for Redis */
};

void cluster_def_free(struct cluster_def *def); /* NULL is fine */
int cluster_def_clone(const struct cluster_def *from, struct cluster_def **ret);
/* tls is given, but no URL is with TLS: the section has no effect, which is worth a note. */
bool redis_tls_unused(const struct redis_def *redis);
#define REDIS_TLS_UNUSED                                                                           \
	"cluster.redis.tls is given, but no URL is with TLS (rediss://): nothing is "              \
	"encrypted"

#endif
