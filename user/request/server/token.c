// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* token.c - see token.h. */
#include "request/server/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 1024

int token_read(const char *path, struct token *ret, struct sl_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct token token;
	char text[TOKEN_MAX + 1];
	ssize_t n = -1;
	size_t len;

	if (fd >= 0 && fstat(fd, &token.read) == 0)
		n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		sl_err_set(err, errno, "token file %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -EIO;
	text[n] = '\0';
	len = strcspn(text, "\r\n");
	if (len < TOKEN_MIN || (size_t)n == TOKEN_MAX || strlen(text) != (size_t)n) {
		OPENSSL_cleanse(text, sizeof(text));
		return sl_err_set(err, EINVAL,
				  "token file %s: the first line must have %d to %d "
				  "characters",
				  path, TOKEN_MIN, TOKEN_MAX - 1);
	}
	token_digest((struct bytes){ text, len }, token.digest);
	OPENSSL_cleanse(text, sizeof(text));
	*ret = token;
	return 0;
}

void token_digest(struct bytes text, unsigned char digest[SHA256_DIGEST_LENGTH])
{
	SHA256((const unsigned char *)text.at, text.len, digest);
}

bool token_is(const struct token *token, const unsigned char digest[SHA256_DIGEST_LENGTH])
{
	return !CRYPTO_memcmp(digest, token->digest, SHA256_DIGEST_LENGTH);
}

bool token_changed(const struct token *token, const char *path)
{
	const struct stat *was = &token->read;
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	return st.st_ino != was->st_ino || st.st_dev != was->st_dev || st.st_size != was->st_size ||
	       st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}
