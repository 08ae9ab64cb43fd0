// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_slots.c - see redis_slots.h.
 *
 * CLUSTER SLOTS instead of CLUSTER SHARDS: every version has it, masters come first in each
 * range, and over TLS its ports are those for TLS.
 */
#include "cluster/redis/redis_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

u16 redis_crc16(const void *data, size_t len)
{
	const u8 *at = data;
	u32 crc = 0;

	/* By nibbles: a table of 16 numbers is easy to check, and a tag has only 16 bytes. */
	static const u16 table[16] = {
		0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
		0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
	};

	for (size_t i = 0; i < len; i++) {
		crc = (crc << 4 ^ table[(crc >> 12 ^ at[i] >> 4) & 15]) & 0xffff;
		crc = (crc << 4 ^ table[(crc >> 12 ^ at[i]) & 15]) & 0xffff;
	}
	return (u16)crc;
}

void redis_tag(const char *key, size_t len, const char **ret_tag, size_t *ret_len)
{
	const char *open = memchr(key, '{', len), *close = NULL;

	if (open)
		close = memchr(open + 1, '}', len - (size_t)(open + 1 - key));
	*ret_tag = key;
	*ret_len = len;
	if (close && close > open + 1) {
		*ret_tag = open + 1;
		*ret_len = (size_t)(close - open - 1);
	}
}

u32 redis_slot(const char *key, size_t len)
{
	const char *tag;
	size_t tag_len;

	redis_tag(key, len, &tag, &tag_len);
	return redis_crc16(tag, tag_len) % REDIS_SLOTS;
}

/* ------------------------------------------------------------------ addresses */

/*
 * Accepts a name or an address: printable, without blanks. "" is the host that replied; "?", of a
 * server without its configured name, is -ENOENT.
 */
static int endpoint_make(const char *host, size_t len, long long port, const char *from,
			 struct redis_endpoint *ret)
{
	if (!len) {
		host = from;
		len = strlen(from);
	}
	if (!len || len > REDIS_HOST_MAX || port < 1 || port > 65535)
		return -EBADMSG;
	if (len == 1 && *host == '?')
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		if (host[i] <= ' ' || host[i] > '~')
			return -EBADMSG;
	memcpy(ret->host, host, len);
	ret->host[len] = 0;
	ret->port = (u16)port;
	return 0;
}

/* ------------------------------------------------------------------ the map */

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

static bool is_slot(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 &&
	       reply->integer < REDIS_SLOTS;
}

/* [host, port, id, ...]; a nil host is the one that replied. */
static int master_read(const redisReply *reply, const char *from, struct redis_endpoint *ret)
{
	const redisReply *host, *port;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2)
		return -EBADMSG;
	host = reply->element[0];
	port = reply->element[1];
	if (port->type != REDIS_REPLY_INTEGER)
		return -EBADMSG;
	if (host->type == REDIS_REPLY_NIL)
		return endpoint_make("", 0, port->integer, from, ret);
	if (!is_text(host))
		return -EBADMSG;
	return endpoint_make(host->str, host->len, port->integer, from, ret);
}

/* Its number + 1. Ranges of one master are mostly adjacent: searches the last masters first. */
static int master_number(struct redis_slot_map *map, const struct redis_endpoint *endpoint)
{
	for (u32 i = map->masters; i > 0; i--)
		if (map->master[i - 1].port == endpoint->port &&
		    !strcmp(map->master[i - 1].host, endpoint->host))
			return (int)i;
	if (map->masters == REDIS_MASTERS_MAX)
		return -E2BIG;
	map->master[map->masters++] = *endpoint;
	return (int)map->masters;
}

/* [first, last, master, replica...] */
static int range_read(const redisReply *reply, const char *from, struct redis_slot_map *map)
{
	struct redis_endpoint endpoint;
	long long first, last;
	int number;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
	    !is_slot(reply->element[0]) || !is_slot(reply->element[1]))
		return -EBADMSG;
	first = reply->element[0]->integer;
	last = reply->element[1]->integer;
	if (first > last)
		return -EBADMSG;
	number = master_read(reply->element[2], from, &endpoint);
	if (number == -ENOENT)
		return 0;
	if (!number)
		number = master_number(map, &endpoint);
	if (number < 0)
		return number;
	for (long long slot = first; slot <= last; slot++) {
		/* A slot listed twice: the reply is inconsistent. */
		if (map->owner[slot])
			return -EBADMSG;
		map->owner[slot] = (u16)number;
		map->served++;
	}
	return 0;
}

int redis_slots_read(const redisReply *reply, const char *from, struct redis_slot_map *ret)
{
	int r = 0;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements > REDIS_SLOTS)
		return -EBADMSG;
	ret->masters = 0;
	ret->served = 0;
	memset(ret->owner, 0, sizeof(ret->owner));
	for (size_t i = 0; i < reply->elements && !r; i++)
		r = range_read(reply->element[i], from, ret);
	return r;
}

/* ------------------------------------------------------------------ redirections */

/* Digits only, at most five; moves *at past them. */
static long long number_read(const char **at)
{
	long long number = 0;
	int digits = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		number = number * 10 + (**at - '0');
		if (++digits > 5)
			return -1;
	}
	return digits ? number : -1;
}

int redis_redirect_read(const char *error_text, const char *from, struct redis_redirect *ret)
{
	const char *at, *colon, *host;
	long long slot, port;
	size_t len;

	if (!strncmp(error_text, "MOVED ", 6))
		at = error_text + 6;
	else if (!strncmp(error_text, "ASK ", 4))
		at = error_text + 4;
	else
		return -EBADMSG;
	slot = number_read(&at);
	if (slot < 0 || slot >= REDIS_SLOTS || *at != ' ')
		return -EBADMSG;
	host = at + 1;
	colon = strrchr(host, ':');
	if (!colon)
		return -EBADMSG;
	len = (size_t)(colon - host);
	/* Redis does not write [::1], but others that use its protocol do. */
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	at = colon + 1;
	port = number_read(&at);
	if (*at || endpoint_make(host, len, port, from, &ret->to) != 0)
		return -EBADMSG;
	ret->ask = error_text[0] == 'A';
	ret->slot = (u32)slot;
	return 0;
}
