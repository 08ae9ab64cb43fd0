// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * redis_tls.c - TLS and the password. Their files are read at the start, since the daemon drops its
 * privileges later, and again for each connection (certificates only if they have changed); if that
 * fails the previous content stays in use.
 *
 * The server's certificate must be signed by a CA of tls.ca (or the system's) and match tls.name
 * (or the host of the url); this cannot be disabled.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/redis_private.h"
#include "lib/log.h"

static int fail(struct sl_err *err, const char *what, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return sl_err_set(err, EINVAL, "cluster.redis.tls: %s %s: %s", what, path,
			  why ? why : "cannot be read");
}

static int read_files(SSL_CTX *tls, const struct redis_def *def, struct sl_err *err)
{
	ERR_clear_error();
	if (def->ca ? SSL_CTX_load_verify_locations(tls, def->ca, NULL) != 1
		    : SSL_CTX_set_default_verify_paths(tls) != 1)
		return fail(err, "ca", def->ca ? def->ca : "(the system's)");
	if (!def->cert)
		return 0;
	if (SSL_CTX_use_certificate_chain_file(tls, def->cert) != 1)
		return fail(err, "cert", def->cert);
	if (!def->key || SSL_CTX_use_PrivateKey_file(tls, def->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(tls) != 1)
		return fail(err, "key", def->key ? def->key : "");
	return 0;
}

static void look_at_files(const struct redis_def *def, struct stat ret[3])
{
	const char *const path[] = { def->ca, def->cert, def->key };

	memset(ret, 0, 3 * sizeof(*ret));
	for (int i = 0; i < 3; i++)
		if (path[i] && stat(path[i], &ret[i]) < 0)
			ret[i].st_ino = 0;
}

static bool is_changed(const struct redis *redis)
{
	struct stat now[3];

	look_at_files(redis->def, now);
	for (int i = 0; i < 3; i++)
		if (now[i].st_ino != redis->tls_read[i].st_ino ||
		    now[i].st_size != redis->tls_read[i].st_size ||
		    now[i].st_mtim.tv_sec != redis->tls_read[i].st_mtim.tv_sec ||
		    now[i].st_mtim.tv_nsec != redis->tls_read[i].st_mtim.tv_nsec)
			return true;
	return false;
}

/* If the files cannot be read the previous content stays in use. */
static int load(struct redis *redis, struct sl_err *err)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
	int r;

	if (!tls)
		return sl_err_set(err, ENOMEM, "out of memory");
	look_at_files(redis->def, redis->tls_read);
	SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
	SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
	r = read_files(tls, redis->def, err);
	if (r < 0) {
		SSL_CTX_free(tls);
		return r;
	}
	SSL_CTX_free(redis->tls);
	redis->tls = tls;
	return 0;
}

int redis_tls_open(struct redis *redis, struct sl_err *err)
{
	bool wanted = false;

	for (size_t i = 0; i < redis->def->url_count; i++)
		wanted |= redis->def->url[i].tls;
	return wanted ? load(redis, err) : 0;
}

SSL *redis_tls_new(struct redis *redis, const char *host)
{
	const char *name = redis->def->tls_name ? redis->def->tls_name : host;
	X509_VERIFY_PARAM *param;
	struct sl_err err;
	SSL *ssl;

	if (redis->tls && is_changed(redis) && load(redis, &err) < 0)
		log_warn("%s; keeping the certificates read before", err.message);
	ssl = redis->tls ? SSL_new(redis->tls) : NULL;
	if (!ssl)
		return NULL;
	param = SSL_get0_param(ssl);
	/*
	 * An address is compared with the certificate's addresses, and is not sent as a name
	 * (SNI).
	 */
	if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1)
		return ssl;
	ERR_clear_error();
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
	    SSL_set_tlsext_host_name(ssl, name) == 1)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

void redis_tls_why(SSL *ssl, unsigned long error, char *buf, size_t size)
{
	long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	const char *reason = ERR_reason_error_string(error);

	buf[0] = 0;
	if (result != X509_V_OK)
		snprintf(buf, size, "certificate rejected: %s",
			 X509_verify_cert_error_string(result));
	else if (reason)
		snprintf(buf, size, "TLS: %s", reason);
	ERR_clear_error();
}

int redis_password_read(struct redis *redis, struct sl_err *err)
{
	const char *path = redis->def->password_file;
	char line[1024], *password;
	FILE *file;

	if (!path)
		return 0;
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file)) {
		int code = file ? ENODATA : errno;

		if (file)
			fclose(file);
		return sl_err_set(err, code, "cluster.redis.password_file: %s: %s", path,
				  code == ENODATA ? "is empty" : strerror(code));
	}
	fclose(file);
	line[strcspn(line, "\r\n")] = 0;
	password = strdup(line);
	explicit_bzero(line, sizeof(line));
	if (!password)
		return sl_err_set(err, ENOMEM, "out of memory");
	if (redis->password) {
		explicit_bzero(redis->password, strlen(redis->password));
		free(redis->password);
	}
	redis->password = password;
	return 0;
}
