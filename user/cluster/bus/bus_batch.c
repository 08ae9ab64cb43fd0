// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bus_batch.c - see bus_batch.h. */
#include "cluster/bus/bus_batch.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

const char *bus_verdict_name(enum bus_verdict verdict)
{
	static const char *const name[BUS_VERDICT_COUNT] = {
		[BUS_GOOD] = "good",   [BUS_FORGED] = "signature", [BUS_MALFORMED] = "malformed",
		[BUS_OLD] = "old",     [BUS_AHEAD] = "ahead",	   [BUS_REPEATED] = "repeated",
		[BUS_CROWD] = "crowd", [BUS_FLOOD] = "flood",
	};

	return name[verdict];
}

int bus_sign(const struct cluster_keys *keys, const char *prefix, const void *text, size_t len,
	     u8 ret[BUS_SIGNATURE])
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
	char digest[] = "SHA256";
	OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", digest, 0),
				OSSL_PARAM_construct_end() };
	size_t size = 0;
	bool done = context &&
		    EVP_MAC_init(context, keys->signature, sizeof(keys->signature), params) &&
		    /* Includes the terminating 0, so the signature covers the end of the prefix. */
		    EVP_MAC_update(context, (const unsigned char *)prefix, strlen(prefix) + 1) &&
		    EVP_MAC_update(context, text, len) &&
		    EVP_MAC_final(context, ret, &size, BUS_SIGNATURE);

	EVP_MAC_CTX_free(context);
	EVP_MAC_free(mac);
	return done ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ writing */

void bus_batch_begin(struct evbuffer *out, const struct bus_head *head)
{
	/* Node names are [A-Za-z0-9._-] and the version is a constant: no escaping needed. */
	evbuffer_add_printf(out,
			    "{\"node\":\"%s\",\"boot_us\":%llu,\"number\":%llu,"
			    "\"sent_us\":%llu,\"sync_us\":%llu,\"version\":\"%s\",\"bye\":%s,"
			    "\"messages\":[",
			    head->node, head->boot_us, head->number, head->sent_us, head->sync_us,
			    head->version, head->bye ? "true" : "false");
}

void bus_batch_add(struct evbuffer *out, bool first, const char *kind, u64 until_us,
		   const char *body)
{
	evbuffer_add_printf(out, "%s{\"kind\":\"%s\",\"until_us\":%llu,\"body\":", first ? "" : ",",
			    kind, until_us);
	evbuffer_add(out, body, strlen(body));
	evbuffer_add(out, "}", 1);
}

void bus_batch_end(struct evbuffer *out)
{
	evbuffer_add(out, "]}", 2);
}

/* ------------------------------------------------------------------ reading */

static bool read_u64(const json_t *object, const char *key, u64 *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret = (u64)json_integer_value(value);
	return true;
}

/* Only characters that are harmless on a terminal. */
static bool read_name(const json_t *object, const char *key, char *buf, size_t size)
{
	const json_t *value = json_object_get(object, key);
	size_t len = json_string_length(value);
	const char *text = json_string_value(value);

	if (!text || !len || len >= size ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+~") !=
		    len)
		return false;
	memcpy(buf, text, len + 1);
	return true;
}

static bool read_head(const json_t *batch, struct bus_head *ret)
{
	ret->bye = json_is_true(json_object_get(batch, "bye"));
	return read_name(batch, "node", ret->node, sizeof(ret->node)) &&
	       read_name(batch, "version", ret->version, sizeof(ret->version)) &&
	       read_u64(batch, "boot_us", &ret->boot_us) &&
	       read_u64(batch, "number", &ret->number) &&
	       read_u64(batch, "sent_us", &ret->sent_us) &&
	       read_u64(batch, "sync_us", &ret->sync_us);
}

enum bus_verdict bus_batch_open(const struct cluster_keys *keys, const char *prefix,
				const char *text, size_t len, const void *signature,
				size_t signature_len, struct bus_head *ret_head,
				json_t **ret_messages)
{
	u8 wanted[BUS_SIGNATURE];
	json_t *batch, *messages;
	struct bus_head head;

	if (signature_len != BUS_SIGNATURE || len > BUS_BATCH_MAX ||
	    bus_sign(keys, prefix, text, len, wanted) < 0 ||
	    CRYPTO_memcmp(wanted, signature, BUS_SIGNATURE) != 0)
		return BUS_FORGED;
	batch = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	messages = json_object_get(batch, "messages");
	if (!read_head(batch, &head) || !json_is_array(messages) ||
	    json_array_size(messages) > BUS_MESSAGES_MAX) {
		json_decref(batch);
		return BUS_MALFORMED;
	}
	*ret_head = head;
	*ret_messages = json_incref(messages);
	json_decref(batch);
	return BUS_GOOD;
}

bool bus_message_read(const json_t *message, const char **ret_kind, u64 *ret_until_us,
		      const json_t **ret_body)
{
	*ret_kind = json_string_value(json_object_get(message, "kind"));
	*ret_body = json_object_get(message, "body");
	return *ret_kind && json_is_object(*ret_body) &&
	       read_u64(message, "until_us", ret_until_us);
}
