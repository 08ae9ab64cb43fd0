/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_slots.h - the slots of a Redis Cluster: which a key is in, and what servers say about who
 * has them. Pure: no connection, no state. What servers say is input and checked to the last field.
 */
#ifndef SLUICE_REDIS_SLOTS_H
#define SLUICE_REDIS_SLOTS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

#define REDIS_SLOTS 16384
#define REDIS_MASTERS_MAX 1000		/* what Redis recommends as the most */
#define REDIS_HOST_MAX 255

/* CRC-16/XMODEM: polynomial 0x1021, begins with 0; of "123456789" 0x31c3. */
u16 redis_crc16(const void *data, size_t len);
/*
 * The part of a key that decides where it lives: what is between the first { and the first }
 * behind it, where that is not empty; else all of it.
 */
void redis_tag(const char *key, size_t len, const char **ret_tag, size_t *ret_len);
u32 redis_slot(const char *key, size_t len);

struct redis_endpoint {
	char host[REDIS_HOST_MAX + 1];
	u16 port;
};

struct redis_slot_map {
	u32 masters;
	u32 served;				/* slots that somebody has */
	u16 owner[REDIS_SLOTS];			/* its master's number + 1; 0: nobody */
	struct redis_endpoint master[REDIS_MASTERS_MAX];
};

/*
 * The answer to CLUSTER SLOTS. `asked`: the host it came from, which a master without an address
 * of its own is at. 0; -EBADMSG: it makes no sense, -E2BIG: more than REDIS_MASTERS_MAX; *ret is
 * then of no use.
 */
int redis_slots_read(const redisReply *reply, const char *asked, struct redis_slot_map *ret);

struct redis_redirect {
	bool ask;			/* this command only, after ASKING */
	u32 slot;
	struct redis_endpoint to;
};

/* An error "MOVED 3999 10.0.0.1:6381" or "ASK ...". 0, or -EBADMSG: it is none. */
int redis_redirect_read(const char *words, const char *asked, struct redis_redirect *ret);

#endif
