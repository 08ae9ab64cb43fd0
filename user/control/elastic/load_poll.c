// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load_poll.c - see load_poll.h. */
#include "control/elastic/load_poll.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <math.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"
#include "control/elastic/load_signal.h"
#include "lib/clock.h"
#include "lib/log.h"

#define HEAD_MAX 8192
#define BODY_MAX (256 * 1024)
#define VALID_INTERVALS 3

struct load_poll {
	struct load_poll *next;
	struct scales *scales;
	struct load_signal_def *def; /* its own */
	struct event *timer;	     /* until the next poll; while one runs its deadline */
	struct evhttp_connection
		*connection; /* freed before the next poll, never in its callback */
	bool running;
	struct load_poll_stats stats;
	char error[256];
};

/* ------------------------------------------------------------------ the value */

/* A number, or one as text, as Prometheus has them. */
static bool number_of(const json_t *json, double *ret)
{
	const char *text = json_string_value(json);
	char *end;

	if (json_is_number(json)) {
		*ret = json_number_value(json);
		return true;
	}
	if (!text || !*text)
		return false;
	*ret = strtod(text, &end);
	return !*end && end != text;
}

/* {"data": {"resultType": "vector", "result": [{"value": [TIME, "0.63"]}]}}, or a scalar's. */
static const json_t *prometheus_value(const json_t *root, struct sl_err *err)
{
	const json_t *data = json_object_get(root, "data"),
		     *result = json_object_get(data, "result");
	const char *type = json_string_value(json_object_get(data, "resultType"));

	if (type && !strcmp(type, "scalar"))
		return json_array_get(result, 1);
	if (!type || strcmp(type, "vector")) {
		sl_err_set(err, EINVAL, "the query's result is neither a vector nor a scalar");
		return NULL;
	}
	if (json_array_size(result) != 1) {
		sl_err_set(err, EINVAL, "the query's result has %zu values; one is required",
			   json_array_size(result));
		return NULL;
	}
	return json_array_get(json_object_get(json_array_get(result, 0), "value"), 1);
}

static const json_t *member_of(const json_t *json, const char *path)
{
	char name[260];

	while (json && *path) {
		size_t len = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		json = json_is_array(json) && len && strspn(name, "0123456789") == len && len < 9
			       ? json_array_get(json, strtoul(name, NULL, 10))
			       : json_object_get(json, name);
		path += len + (path[len] == '.');
	}
	return json;
}

int load_poll_value(const struct load_signal_def *def, const char *body, size_t size, double *ret,
		    struct sl_err *err)
{
	json_error_t error;
	json_t *root = json_loadb(body, size, JSON_DECODE_ANY, &error);
	const json_t *value;
	double number = -1;
	int rc = 0;

	if (!root)
		return size ? sl_err_set(err, EINVAL,
					 "the response is not JSON: line %d, column %d", error.line,
					 error.column)
			    : sl_err_set(err, EINVAL, "the response is not JSON: it is empty");
	sl_err_set(err, EINVAL, "the response has no number at %s",
		   def->json ? def->path : "data.result");
	value = def->json ? member_of(root, def->path) : prometheus_value(root, err);
	if (!value || !number_of(value, &number))
		rc = -EINVAL;
	else if (!(number >= 0 && number / def->full <= LOAD_SIGNAL_VALUE_MAX))
		rc = sl_err_set(err, EINVAL, "the value is %g; from 0 to %g are accepted", number,
				LOAD_SIGNAL_VALUE_MAX * def->full);
	else
		*ret = number / def->full;
	json_decref(root);
	return rc;
}

/* ------------------------------------------------------------------ one poll */

static void add_timer(struct load_poll *poll, u64 ns)
{
	struct timeval in = { .tv_sec = (time_t)(ns / SL_NS_PER_SEC),
			      .tv_usec = (suseconds_t)(ns % SL_NS_PER_SEC / 1000) };

	event_add(poll->timer, &in);
}

/* The poll has ended; error NULL: with a value. */
static void end_poll(struct load_poll *poll, const char *error)
{
	poll->running = false;
	poll->stats.polls++;
	if (error) {
		if (!poll->stats.error)
			log_warn("load signal %s: polling failed: %s", poll->def->name, error);
		poll->stats.failures++;
		snprintf(poll->error, sizeof(poll->error), "%s", error);
		poll->stats.error = poll->error;
	} else if (poll->stats.error) {
		log_info("load signal %s: polling succeeds again", poll->def->name);
		poll->stats.error = NULL;
	}
	add_timer(poll, poll->def->every_ns);
}

static void on_response(struct evhttp_request *request, void *arg)
{
	struct load_poll *poll = arg;
	struct evbuffer *body;
	char words[64];
	struct sl_err err;
	double value;
	size_t size;

	if (!poll->running)
		return;
	if (!request || !evhttp_request_get_response_code(request)) {
		end_poll(poll, "no response: the connection failed, or the response is too large");
		return;
	}
	if (evhttp_request_get_response_code(request) != 200) {
		snprintf(words, sizeof(words), "status %d",
			 evhttp_request_get_response_code(request));
		end_poll(poll, words);
		return;
	}
	body = evhttp_request_get_input_buffer(request);
	size = evbuffer_get_length(body);
	if (load_poll_value(poll->def, (const char *)evbuffer_pullup(body, -1), size, &value,
			    &err)) {
		end_poll(poll, err.message);
		return;
	}
	load_signal_found(poll->scales, poll->def->name, value,
			  clock_mono_ns() + VALID_INTERVALS * poll->def->every_ns);
	end_poll(poll, NULL);
}

/* A connection's TLS, which verifies the server; NULL: out of memory, or no authorities. */
static struct bufferevent *new_tls(struct scales *scales, const char *host)
{
	unsigned char address[16];
	SSL *ssl;

	if (!scales->tls) {
		scales->tls = SSL_CTX_new(TLS_client_method());
		if (!scales->tls)
			return NULL;
		SSL_CTX_set_default_verify_paths(scales->tls);
		SSL_CTX_set_min_proto_version(scales->tls, TLS1_2_VERSION);
		SSL_CTX_set_verify(scales->tls, SSL_VERIFY_PEER, NULL);
	}
	ssl = SSL_new(scales->tls);
	if (!ssl)
		return NULL;
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) {
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	} else {
		SSL_set_tlsext_host_name(ssl, host);
		SSL_set1_host(ssl, host);
	}
	return bufferevent_openssl_socket_new(scales->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
					      BEV_OPT_CLOSE_ON_FREE);
}

/* The target of the request: of the URL, and for Prometheus of its API. NULL: out of memory. */
static char *target_of(const struct load_signal_def *def, const struct evhttp_uri *uri)
{
	const char *path = evhttp_uri_get_path(uri), *query = evhttp_uri_get_query(uri);
	char *encoded = def->query ? evhttp_uriencode(def->query, -1, 1) : NULL, *target = NULL;
	size_t len = path ? strlen(path) : 0;
	int n;

	if (def->prometheus && !encoded)
		return NULL;
	while (def->prometheus && len && path[len - 1] == '/')
		len--;
	if (def->prometheus)
		n = asprintf(&target, "%.*s/api/v1/query?query=%s", (int)len, path ? path : "",
			     encoded);
	else
		n = asprintf(&target, "%s%s%s", len ? path : "/", query ? "?" : "",
			     query ? query : "");
	free(encoded);
	return n < 0 ? NULL : target;
}

static bool send_request(struct load_poll *poll, const struct evhttp_uri *uri)
{
	struct evhttp_request *request = evhttp_request_new(on_response, poll);
	char *target = target_of(poll->def, uri), at[300];
	int port = evhttp_uri_get_port(uri);
	bool sent = false;

	snprintf(at, sizeof(at), port > 0 ? "%s:%d" : "%s", evhttp_uri_get_host(uri), port);
	if (request && target &&
	    !evhttp_add_header(evhttp_request_get_output_headers(request), "Host", at) &&
	    !evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close")) {
		/* Owns the request from here, also where it fails. */
		sent = !evhttp_make_request(poll->connection, request, EVHTTP_REQ_GET, target);
	} else if (request) {
		evhttp_request_free(request);
	}
	free(target);
	return sent;
}

static bool connect_to(struct load_poll *poll, const struct evhttp_uri *uri, const char *host)
{
	struct scales *scales = poll->scales;
	bool tls = !strcmp(evhttp_uri_get_scheme(uri), "https");
	int port = evhttp_uri_get_port(uri);
	struct bufferevent *bev = tls ? new_tls(scales, host) : NULL;

	/* Names are looked up by libevent: getaddrinfo() would block. */
	if (!scales->dns)
		scales->dns =
			evdns_base_new(scales->base, EVDNS_BASE_INITIALIZE_NAMESERVERS |
							     EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!scales->dns)
		scales->dns = evdns_base_new(scales->base, 0);
	if (!scales->dns || (tls && !bev))
		return false;
	poll->connection =
		evhttp_connection_base_bufferevent_new(scales->base, scales->dns, bev, host,
						       port > 0 ? port
						       : tls	? 443
								: 80);
	if (!poll->connection) {
		if (bev)
			bufferevent_free(bev);
		return false;
	}
	evhttp_connection_set_max_headers_size(poll->connection, HEAD_MAX);
	evhttp_connection_set_max_body_size(poll->connection, BODY_MAX);
	evhttp_connection_set_retries(poll->connection, 0);
	return true;
}

static void close_connection(struct load_poll *poll)
{
	poll->running = false;
	if (poll->connection)
		evhttp_connection_free(poll->connection);
	poll->connection = NULL;
}

/* Begins a poll; while one runs this is its deadline. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct load_poll *poll = arg;
	const char *url = poll->def->prometheus ? poll->def->prometheus : poll->def->json;
	struct evhttp_uri *uri;
	bool late = poll->running;
	char host[256] = "";
	size_t len;

	close_connection(poll);
	if (late) {
		end_poll(poll, "no whole response within the timeout");
		return;
	}
	uri = evhttp_uri_parse(url);
	if (uri && evhttp_uri_get_host(uri))
		snprintf(host, sizeof(host), "%s", evhttp_uri_get_host(uri));
	len = strlen(host);
	if (host[0] == '[' && host[len - 1] == ']') {
		memmove(host, host + 1, len - 2);
		host[len - 2] = '\0';
	}
	add_timer(poll, poll->def->timeout_ns);
	poll->running = true;
	/* A request that fails at once may have called on_response(). */
	if ((!host[0] || !connect_to(poll, uri, host) || !send_request(poll, uri)) && poll->running)
		end_poll(poll, "the request cannot be sent");
	if (uri)
		evhttp_uri_free(uri);
}

/* ------------------------------------------------------------------ all polls */

static void poll_free(struct load_poll *poll)
{
	close_connection(poll);
	if (poll->timer)
		event_free(poll->timer);
	keys_free(&load_signal_keys, poll->def);
	free(poll);
}

static struct load_poll *poll_new(struct scales *scales, const struct load_signal_def *def)
{
	struct load_poll *poll = calloc(1, sizeof(*poll));

	if (!poll)
		return NULL;
	poll->scales = scales;
	poll->def = keys_clone(&load_signal_keys, def);
	poll->timer = evtimer_new(scales->base, on_timer, poll);
	if (poll->def && poll->timer) {
		add_timer(poll, 0);
		return poll;
	}
	poll_free(poll);
	return NULL;
}

/* Removes from the list the poll of a definition, or NULL. */
static struct load_poll *take(struct load_poll **list, const struct load_signal_def *def)
{
	for (struct load_poll **at = list; *at; at = &(*at)->next) {
		struct load_poll *poll = *at;

		if (!keys_equal(&load_signal_keys, poll->def, def))
			continue;
		*at = poll->next;
		return poll;
	}
	return NULL;
}

void load_polls_watch(struct scales *scales)
{
	const struct policy *policy = scales->running->policy;
	struct load_poll *old = scales->polls;

	scales->polls = NULL;
	for (size_t i = 0; scales->base && i < policy->load_signal_count; i++) {
		const struct load_signal_def *def = &policy->load_signal[i];
		struct load_poll *poll;

		if (!def->prometheus && !def->json)
			continue;
		poll = take(&old, def);
		if (!poll)
			poll = poll_new(scales, def);
		if (!poll) {
			log_error("load signal %s: out of memory, it is not polled", def->name);
			continue;
		}
		poll->next = scales->polls;
		scales->polls = poll;
	}
	while (old) {
		struct load_poll *next = old->next;

		poll_free(old);
		old = next;
	}
}

void load_polls_free(struct scales *scales)
{
	while (scales->polls) {
		struct load_poll *next = scales->polls->next;

		poll_free(scales->polls);
		scales->polls = next;
	}
	if (scales->dns)
		evdns_base_free(scales->dns, 0);
	scales->dns = NULL;
	SSL_CTX_free(scales->tls);
	scales->tls = NULL;
}

const struct load_poll_stats *load_poll_stats(const struct scales *scales, const char *name)
{
	for (const struct load_poll *poll = scales->polls; poll; poll = poll->next)
		if (!strcmp(poll->def->name, name))
			return &poll->stats;
	return NULL;
}
