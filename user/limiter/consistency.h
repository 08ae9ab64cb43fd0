/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* consistency.h - where a limit shared by nodes is decided, also when Redis is unavailable. */
#ifndef SLUICE_CONSISTENCY_H
#define SLUICE_CONSISTENCY_H

enum consistency {
	CONSISTENCY_STRICT,	/* Redis, each time */
	CONSISTENCY_LEASE,	/* this node, within its lease from Redis */
	CONSISTENCY_WRITE_BACK, /* this node; counts are flushed to Redis every interval */
};

enum store_failure {
	STORE_FAILS_LOCAL, /* this node's last part of the limit */
	STORE_FAILS_OPEN,
	STORE_FAILS_CLOSED,
	STORE_FAILS_ERROR,
};

#endif
