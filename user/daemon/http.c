// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * http.c - see http.h. GET and HEAD only ever read; small headers, small bodies. Who may connect
 * is the listen address's matter: loopback by default. The one thing that changes something, PUT
 * of a signal, is for this host alone whatever the address.
 */
#include "daemon/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/clock.h"
#include "daemon/metrics.h"
#include "daemon/signal.h"
#include "daemon/view.h"
#include "lib/units.h"

#define TIMEOUT_S 10
#define HEADERS_MAX 8192
#define BODY_MAX 4096
#define SIGNALS_PATH "/v1/signals/"

static void send_text(struct evhttp_request *request, int code, const char *reason,
		      const char *type, struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_send_reply(request, code, reason, body);
}

static void on_metrics(struct daemon *d, struct evhttp_request *request, struct evbuffer *body)
{
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
	bool openmetrics = accept && strstr(accept, "application/openmetrics-text");

	metrics_write(d, openmetrics, body);
	send_text(request, HTTP_OK, "OK",
		  openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
				"text/plain; version=0.0.4; charset=utf-8", body);
}

static void on_health(struct daemon *d, struct evhttp_request *request, struct evbuffer *body)
{
	evbuffer_add_printf(body, "ok\n");
	send_text(request, HTTP_OK, "OK", "text/plain; charset=utf-8", body);
}

static void on_ready(struct daemon *d, struct evhttp_request *request, struct evbuffer *body)
{
	bool ready = d->image && !d->stopping;

	evbuffer_add_printf(body, ready ? "ready\n" : "not ready\n");
	send_text(request, ready ? HTTP_OK : HTTP_SERVUNAVAIL, ready ? "OK" : "Unavailable",
		  "text/plain; charset=utf-8", body);
}

static void on_status(struct daemon *d, struct evhttp_request *request, struct evbuffer *body)
{
	const struct dp_table_stats *table = view_table(d);
	char text[32];

	evbuffer_add_printf(body, "sluiced %s, up %s\n\n", SLUICE_VERSION,
			    duration_format((clock_mono_ns() - d->started_mono_ns) / SL_NS_PER_SEC *
						    SL_NS_PER_SEC, text, sizeof(text)));
	evbuffer_add_printf(body, "rules        generation %llu, %zu limits, %zu live changes\n",
			    d->generation, d->running->limit_count, json_array_size(d->live));
	evbuffer_add_printf(body, "last reload  %s at %s\n", d->reload.ok ? "good" : "REFUSED",
			    clock_format_utc(d->reload.at_utc_ns, text, sizeof(text)));
	evbuffer_add_printf(body, "banned       %zu sources\n", bans_look(d)->active);
	evbuffer_add_printf(body, "sessions     %u logged in, never cut off\n", d->image->sessions);
	evbuffer_add_printf(body, "table        %llu of %llu places in use\n\n", table->live,
			    table->ways);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		const struct iface *iface = &d->iface[slot];

		if (view_iface_shown(iface))
			evbuffer_add_printf(body, "%-16s %-8s %.0f packets/s passed, %.0f dropped\n",
					    iface->name, view_iface_state(iface),
					    d->iface_rate[slot].rate[SL_ACT_PASS] +
						    d->iface_rate[slot].rate[SL_ACT_TAG],
					    d->iface_rate[slot].rate[SL_ACT_DROP]);
	}
	evbuffer_add_printf(body, "\n/metrics  /healthz  /readyz\n");
	send_text(request, HTTP_OK, "OK", "text/plain; charset=utf-8", body);
}

/* ------------------------------------------------------------------ signals */

static void send_json(struct evhttp_request *request, int code, const char *reason,
		      const char *type, json_t *json)
{
	struct evbuffer *body = evbuffer_new();
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (body && text) {
		evbuffer_add_printf(body, "%s\n", text);
		send_text(request, code, reason, type, body);
	} else {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
	}
	if (body)
		evbuffer_free(body);
	free(text);
	json_decref(json);
}

/* RFC 9457. */
static void send_problem(struct evhttp_request *request, int code, const char *title,
			 const char *detail)
{
	send_json(request, code, title, "application/problem+json",
		  json_pack("{s:s, s:i, s:s}", "title", title, "status", code, "detail", detail));
}

/*
 * Over loopback or a Unix socket. A web page that a browser on this host shows could make it
 * ask, too: browsers say Origin with each PUT, nobody else does.
 */
static bool from_this_host(struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&peer)->sin6_addr;

	if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 ||
	    evhttp_find_header(evhttp_request_get_input_headers(request), "Origin"))
		return false;
	if (peer.ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == 127;
	if (peer.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
	return peer.ss_family == AF_UNIX;
}

static void on_signal(struct daemon *d, struct evhttp_request *request, const char *name)
{
	struct evbuffer *input = evhttp_request_get_input_buffer(request);
	size_t size = evbuffer_get_length(input);
	const char *text = (const char *)evbuffer_pullup(input, -1);
	u64 now_ns = clock_mono_ns();
	json_error_t error;
	struct sl_err err;
	json_t *json;
	int r;

	if (evhttp_request_get_command(request) != EVHTTP_REQ_PUT) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "PUT");
		send_problem(request, HTTP_BADMETHOD, "Method Not Allowed", "a signal is PUT");
		return;
	}
	if (!from_this_host(request)) {
		send_problem(request, 403, "Forbidden",
			     "signals are taken from programs of this host only");
		return;
	}
	json = text ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	r = signal_set(d, name, json, now_ns, &err);
	json_decref(json);
	if (!r)
		send_json(request, HTTP_OK, "OK", "application/json",
			  signal_to_json(d, name, now_ns));
	else if (r == -ENOENT)
		send_problem(request, HTTP_NOTFOUND, "Not Found", err.message);
	else if (r == -EINVAL)
		send_problem(request, HTTP_BADREQUEST, "Bad Request", err.message);
	else
		send_problem(request, HTTP_INTERNAL, "Internal Server Error", err.message);
}

/* ------------------------------------------------------------------ requests */

static void on_request(struct evhttp_request *request, void *arg)
{
	static const struct {
		const char *path;
		void (*serve)(struct daemon *, struct evhttp_request *, struct evbuffer *);
	} pages[] = {
		{ "/metrics", on_metrics },
		{ "/healthz", on_health },
		{ "/readyz", on_ready },
		{ "/", on_status },
	};
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	struct evbuffer *body;

	if (path && !strncmp(path, SIGNALS_PATH, strlen(SIGNALS_PATH))) {
		on_signal(arg, request, path + strlen(SIGNALS_PATH));
		return;
	}
	if (evhttp_request_get_command(request) == EVHTTP_REQ_PUT) {
		send_problem(request, HTTP_BADMETHOD, "Method Not Allowed",
			     "only " SIGNALS_PATH "NAME is PUT");
		return;
	}
	body = evbuffer_new();
	for (size_t i = 0; body && path && i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (strcmp(pages[i].path, path) != 0)
			continue;
		pages[i].serve(arg, request, body);
		evbuffer_free(body);
		return;
	}
	if (!body) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
		return;
	}
	evbuffer_add_printf(body, "not here; there are /, /metrics, /healthz and /readyz\n");
	send_text(request, HTTP_NOTFOUND, "Not Found", "text/plain; charset=utf-8", body);
	evbuffer_free(body);
}

int http_start(struct daemon *d, const char *listen, struct sl_err *err)
{
	struct evhttp *http;
	char host[256];
	const char *colon = listen ? strrchr(listen, ':') : NULL;
	unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
	size_t length;

	if (!listen)
		return 0;
	if (!port || port > 65535 || (size_t)(colon - listen) >= sizeof(host))
		return sl_err_set(err, EINVAL, "metrics.listen '%s': ADDRESS:PORT is accepted, as "
				  "127.0.0.1:9810 or [::1]:9810", listen);
	length = (size_t)(colon - listen);
	memcpy(host, listen, length);
	host[length] = '\0';
	if (host[0] == '[' && host[length - 1] == ']') {
		memmove(host, host + 1, length - 2);
		host[length - 2] = '\0';
	}
	http = evhttp_new(d->base);
	if (!http)
		return sl_err_set(err, ENOMEM, "out of memory");
	evhttp_set_timeout(http, TIMEOUT_S);
	evhttp_set_max_headers_size(http, HEADERS_MAX);
	evhttp_set_max_body_size(http, BODY_MAX);
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT);
	evhttp_set_gencb(http, on_request, d);
	errno = 0;
	if (!evhttp_bind_socket_with_handle(http, host, (ev_uint16_t)port)) {
		int code = errno ? errno : EADDRNOTAVAIL;

		evhttp_free(http);
		return sl_err_set(err, code, "cannot serve metrics on %s: %s", listen,
				  strerror(code));
	}
	return 0;
}
