/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redis_slots.h - hash slots of a Redis Cluster: of a key, and in servers' replies. Pure: no
 * connection, no state. Replies are untrusted input, and all fields are checked.
 */
#ifndef SLUICE_REDIS_SLOTS_H
#define SLUICE_REDIS_SLOTS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "sluice/types.h"

#define REDIS_SLOTS 16384
#define REDIS_MASTERS_MAX 1000 /* Redis' recommended maximum */
#define REDIS_HOST_MAX 255

/* CRC-16/XMODEM: polynomial 0x1021, initial value 0; of "123456789" 0x31c3. */
u16 redis_crc16(const void *data, size_t len);
/*
 * The part of a key that selects its slot: the text between the first { and the first } after it,
 * if not empty; else the whole key.
 */
void redis_tag(const char *key, size_t len, const char **ret_tag, size_t *ret_len);
u32 redis_slot(const char *key, size_t len);

struct redis_endpoint {
	char host[REDIS_HOST_MAX + 1];
	u16 port;
};

struct redis_slot_map {
	u32 masters;
	u32 served;		/* slots that have a master */
	u16 owner[REDIS_SLOTS]; /* its master's number + 1; 0: none */
	struct redis_endpoint master[REDIS_MASTERS_MAX];
};

/*
 * Parses the reply to CLUSTER SLOTS. `from`: the host that sent the reply, for masters without an
 * address. 0; -EBADMSG: malformed, -E2BIG: more than REDIS_MASTERS_MAX; *ret is then undefined.
 */
int redis_slots_read(const redisReply *reply, const char *from, struct redis_slot_map *ret);

struct redis_redirect {
	bool ask; /* this command only, after ASKING */
	u32 slot;
	struct redis_endpoint to;
};

/* Parses "MOVED 3999 10.0.0.1:6381" or "ASK ...". 0, or -EBADMSG: another error. */
int redis_redirect_read(const char *error_text, const char *from, struct redis_redirect *ret);

#endif
