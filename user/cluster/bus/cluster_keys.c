// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_keys.c - keys from cluster.secret_file; see cluster.h.
 *
 *     key = HMAC-SHA256(secret, label)
 *
 * with a label for each use, so that one key reveals nothing about another: the seed of hashes
 * (in the memory of every worker) does not permit signing. White space at the end of the file is
 * ignored: an editor may add it on one machine and not on another.
 */
#include "cluster/bus/cluster.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_LEAST 32
#define SECRET_MOST 4096

static int check_mode(int fd, const char *path, struct sl_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sl_err_set(err, errno, "cluster.secret_file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return sl_err_set(err, EINVAL, "cluster.secret_file %s is not a regular file",
				  path);
	if (st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
		return sl_err_set(err, EPERM,
				  "cluster.secret_file %s has mode %04o; 0600 and 0640 "
				  "are accepted, as a reader can sign for any node (chmod 0600 %s)",
				  path, st.st_mode & 07777, path);
	if (st.st_uid && st.st_uid != geteuid())
		return sl_err_set(err, EPERM,
				  "cluster.secret_file %s belongs to uid %u; it must belong "
				  "to root or the user that sluiced runs as",
				  path, st.st_uid);
	return 0;
}

/* Returns the length without white space at the end, or -errno. */
static ssize_t read_secret(const char *path, unsigned char *secret, struct sl_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	ssize_t size = 0, got = 0;

	if (fd < 0)
		return sl_err_set(err, errno,
				  "cluster.secret_file %s: %s; create one with `openssl "
				  "rand -base64 48`, the same on all nodes",
				  path, strerror(errno));
	r = check_mode(fd, path, err);
	while (!r && size <= SECRET_MOST &&
	       (got = read(fd, secret + size, (size_t)(SECRET_MOST + 1 - size))) > 0)
		size += got;
	if (!r && got < 0)
		r = sl_err_set(err, errno, "cluster.secret_file %s: %s", path, strerror(errno));
	close(fd);
	if (r < 0)
		return r;
	if (size > SECRET_MOST)
		return sl_err_set(err, EINVAL,
				  "cluster.secret_file %s has more than %d bytes; %d to %d "
				  "are accepted",
				  path, SECRET_MOST, SECRET_LEAST, SECRET_MOST);
	while (size && isspace(secret[size - 1]))
		size--;
	if (size < SECRET_LEAST)
		return sl_err_set(err, EINVAL,
				  "cluster.secret_file %s has %zd bytes; at least %d are "
				  "accepted (create them with `openssl rand -base64 48`)",
				  path, size, SECRET_LEAST);
	return size;
}

static int derive(const unsigned char *secret, size_t size, const char *label,
		  unsigned char ret[32])
{
	unsigned int length = 32;

	return HMAC(EVP_sha256(), secret, (int)size, (const unsigned char *)label, strlen(label),
		    ret, &length)
		       ? 0
		       : -ENOMEM;
}

int cluster_keys_read(const char *secret_file, struct cluster_keys *ret, struct sl_err *err)
{
	unsigned char secret[SECRET_MOST + 1], key[32];
	struct cluster_keys keys;
	ssize_t size;
	int r;

	if (!secret_file)
		return sl_err_set(err, EINVAL,
				  "cluster.secret_file is missing: set it to a file of at "
				  "least %d bytes, the same on all nodes",
				  SECRET_LEAST);
	size = read_secret(secret_file, secret, err);
	if (size < 0)
		return (int)size;
	r = derive(secret, (size_t)size, "sluice: keys of buckets, 1", key);
	if (!r) {
		memcpy(&keys.seed, key, sizeof(keys.seed));
		r = derive(secret, (size_t)size, "sluice: messages, 1", keys.signature);
	}
	OPENSSL_cleanse(secret, sizeof(secret));
	OPENSSL_cleanse(key, sizeof(key));
	if (r < 0)
		return sl_err_set(err, -r, "cannot derive keys from %s", secret_file);
	*ret = keys;
	return 0;
}
