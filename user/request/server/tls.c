// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tls.c - see tls.h. bufferevent_openssl does the records.
 *
 * With a client_ca a client certificate is requested, but not required: a client without one may
 * still have a token. One that does not verify ends the handshake.
 */
#include "request/server/tls.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 3
#define HANDSHAKE_S 10 /* from accept to its end */

struct tls {
	SSL_CTX *context;
	char *path[FILES]; /* the file it was read from */
	struct stat read[FILES];
};

/* A connection during its handshake. */
struct handshake {
	TAILQ_ENTRY(handshake) link;
	struct worker *worker;
	struct bufferevent *bev;
	struct event *deadline;
	struct peer_info peer;
	const struct frontend *frontend;
};

TAILQ_HEAD(handshakes, handshake);

/* ------------------------------------------------------------------ a connection */

static struct handshakes *handshakes_of(struct worker *worker)
{
	if (!worker->handshakes) {
		worker->handshakes = malloc(sizeof(*worker->handshakes));
		if (worker->handshakes)
			TAILQ_INIT(worker->handshakes);
	}
	return worker->handshakes;
}

static void handshake_free(struct handshake *handshake)
{
	TAILQ_REMOVE(handshake->worker->handshakes, handshake, link);
	event_free(handshake->deadline);
	free(handshake);
}

static void handshake_fail(struct handshake *handshake)
{
	worker_connection_end(handshake->worker, &handshake->peer);
	bufferevent_free(handshake->bev);
	handshake_free(handshake);
}

/* The deadline of the whole handshake; received bytes do not extend it. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	handshake_fail(arg);
}

/* The name in a client certificate that was verified by client_ca. */
static void read_cert(SSL *ssl, struct peer_info *peer)
{
	X509 *cert =
		SSL_get_verify_result(ssl) == X509_V_OK ? SSL_get1_peer_certificate(ssl) : NULL;
	char name[sizeof(peer->cert_cn)];
	int len = cert ? X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
						   name, sizeof(name))
		       : -1;

	/* Neither truncated nor with a 0 in it. */
	if (len > 0 && (size_t)len < sizeof(name) - 1 && strlen(name) == (size_t)len)
		memcpy(peer->cert_cn, name, (size_t)len + 1);
	X509_free(cert);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct handshake *handshake = arg;
	const struct frontend *frontend = handshake->frontend;
	struct worker *worker = handshake->worker;
	struct peer_info peer = handshake->peer;

	if (!(what & BEV_EVENT_CONNECTED)) {
		handshake_fail(handshake);
		return;
	}
	peer.tls = true;
	read_cert(bufferevent_openssl_get_ssl(bev), &peer);
	handshake_free(handshake);
	bufferevent_disable(bev, EV_READ);
	frontend->accept(worker, bev, &peer);
}

/* Without memory for the session. */
static void refuse(struct worker *worker, int fd, const struct peer_info *peer,
		   struct handshake *handshake, SSL *ssl)
{
	SSL_free(ssl);
	if (handshake && handshake->deadline)
		event_free(handshake->deadline);
	free(handshake);
	worker_connection_end(worker, peer);
	close(fd);
}

void tls_accept(struct worker *worker, int fd, const struct peer_info *peer,
		const struct frontend *frontend)
{
	static const struct timeval most = { .tv_sec = HANDSHAKE_S };
	const struct tls *tls = __atomic_load_n(&worker->tier->tls, __ATOMIC_ACQUIRE);
	struct handshake *handshake = calloc(1, sizeof(*handshake));
	SSL *ssl = tls ? SSL_new(tls->context) : NULL;

	if (handshake)
		handshake->deadline = evtimer_new(worker->base, on_deadline, handshake);
	if (!handshake || !handshake->deadline || !ssl || !handshakes_of(worker)) {
		refuse(worker, fd, peer, handshake, ssl);
		return;
	}
	handshake->worker = worker;
	handshake->peer = *peer;
	handshake->frontend = frontend;
	/* The frontend's ALPN protocol. */
	SSL_set_app_data(ssl, (void *)frontend);
	handshake->bev = bufferevent_openssl_socket_new(
		worker->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!handshake->bev) {
		refuse(worker, fd, peer, handshake, ssl);
		return;
	}
	TAILQ_INSERT_TAIL(worker->handshakes, handshake, link);
	bufferevent_openssl_set_allow_dirty_shutdown(handshake->bev, 1);
	bufferevent_setcb(handshake->bev, NULL, NULL, on_event, handshake);
	event_add(handshake->deadline, &most);
	connection_set(peer->connection, CONNECTION_PENDING);
	bufferevent_enable(handshake->bev, EV_READ | EV_WRITE);
}

void tls_worker_drain(struct worker *worker)
{
	static const struct timeval most = { .tv_usec = 500000 };
	struct handshake *handshake;

	if (worker->handshakes)
		TAILQ_FOREACH(handshake, worker->handshakes, link)
			event_add(handshake->deadline, &most);
}

void tls_worker_stop(struct worker *worker)
{
	struct handshake *handshake;

	while (worker->handshakes && (handshake = TAILQ_FIRST(worker->handshakes)))
		handshake_fail(handshake);
	free(worker->handshakes);
	worker->handshakes = NULL;
}

/* ------------------------------------------------------------------ the files */

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
			   const unsigned char *offered, unsigned int len, void *arg)
{
	const struct frontend *frontend = SSL_get_app_data(ssl);
	const char *alpn = frontend->alpn ? frontend->alpn : "\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, ret_len, (const unsigned char *)alpn,
				  (unsigned int)strlen(alpn), offered,
				  len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int fail(struct sl_err *err, const char *what, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return sl_err_set(err, EINVAL, "http.tls: %s %s: %s", what, path,
			  why ? why : "cannot be read");
}

static int read_files(struct tls *tls, const struct http_def *def, struct sl_err *err)
{
	SSL_CTX *context = tls->context;

	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(context, def->cert) != 1)
		return fail(err, "cert", def->cert);
	if (SSL_CTX_use_PrivateKey_file(context, def->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(context) != 1)
		return fail(err, "key", def->key);
	if (!def->client_ca)
		return 0;
	if (SSL_CTX_load_verify_locations(context, def->client_ca, NULL) != 1)
		return fail(err, "client_ca", def->client_ca);
	SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(def->client_ca));
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	return 0;
}

static int tls_new(const struct http_def *def, struct tls **ret, struct sl_err *err)
{
	const char *const path[FILES] = { def->cert, def->key, def->client_ca };
	struct tls *tls = calloc(1, sizeof(*tls));
	int r = 0;

	if (tls)
		tls->context = SSL_CTX_new(TLS_server_method());
	if (!tls || !tls->context)
		r = sl_err_set(err, ENOMEM, "out of memory");
	for (int i = 0; !r && i < FILES; i++) {
		if (!path[i])
			continue;
		tls->path[i] = strdup(path[i]);
		if (!tls->path[i] || stat(path[i], &tls->read[i]) < 0)
			r = sl_err_set(err, errno, "http.tls: %s: %s", path[i], strerror(errno));
	}
	if (!r) {
		/* Frees record buffers when unused: an idle connection keeps a third. */
		SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
		SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
		SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION);
		SSL_CTX_set_session_id_context(tls->context, (const unsigned char *)"sluice", 6);
		SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, NULL);
		r = read_files(tls, def, err);
	}
	if (r < 0)
		tls_free(tls);
	else
		*ret = tls;
	return r;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	for (int i = 0; i < FILES; i++)
		free(tls->path[i]);
	free(tls);
}

static void retire(void *tls)
{
	tls_free(tls);
}

int tls_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err)
{
	struct tls *next = NULL, *old;
	int r = def->cert ? tls_new(def, &next, err) : 0;

	if (r < 0)
		return r;
	old = __atomic_exchange_n(&tier->tls, next, __ATOMIC_ACQ_REL);
	if (old)
		workers_retire(tier, old, retire);
	return 0;
}

bool tls_changed(const struct http_tier *tier)
{
	const struct tls *tls = tier->tls;
	struct stat st;

	for (int i = 0; tls && i < FILES; i++) {
		const struct stat *was = &tls->read[i];

		if (tls->path[i] && stat(tls->path[i], &st) == 0 &&
		    (st.st_ino != was->st_ino || st.st_dev != was->st_dev ||
		     st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
		     st.st_mtim.tv_nsec != was->st_mtim.tv_nsec))
			return true;
	}
	return false;
}
