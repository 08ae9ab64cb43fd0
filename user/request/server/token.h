/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * token.h - a secret that clients send, from the first line of a file.
 *
 * It is kept and compared as SHA-256: in constant time whatever its length, and no core dump
 * contains it.
 */
#ifndef SLUICE_HTTP_TOKEN_H
#define SLUICE_HTTP_TOKEN_H

#include <openssl/sha.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "lib/bytes.h"
#include "lib/err.h"

struct token {
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct stat read; /* the file as it was read */
};

/* -errno with `err` if it is unreadable, or its first line does not have 16 to 1023 characters. */
int token_read(const char *path, struct token *ret, struct sl_err *err);
/* As of a text that a client sent. */
void token_digest(struct bytes text, unsigned char digest[SHA256_DIGEST_LENGTH]);
bool token_is(const struct token *token, const unsigned char digest[SHA256_DIGEST_LENGTH]);
/* Whether the file has changed since it was read; false while it is being replaced. */
bool token_changed(const struct token *token, const char *path);

#endif
