// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * metrics_listen.c - see metrics_listen.h.
 *
 * The HTTP tier's own frontend, on a worker in the main thread's loop; it bounds requests and
 * connections. GET and HEAD only read; the listen address, loopback by default, decides who may
 * connect; the status page, which names sources, is for this host or those with the token of
 * metrics.token_file. The only write, PUT of a load signal, needs the token.
 */
#include "daemon/metrics_listen.h"
#include "daemon/status_page.h"

#include <errno.h>
#include <event2/buffer.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/host/view.h"
#include "control/metrics/metrics.h"
#include "control/elastic/load_signal.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/units.h"
#include "request/engine/observe.h"
#include "request/frontends/http1/http1.h"
#include "request/server/bind.h"
#include "request/server/listen.h"
#include "request/server/token.h"
#include "request/server/worker.h"
#include "version.h"

#define CONNECTIONS_MAX 64
#define CONNECTIONS_PER_ADDRESS_MAX 16
#define BODY_MAX 4096
#define LOAD_SIGNALS_PATH "/v1/load-signals/"
#define TEXT "text/plain; charset=utf-8"

static struct {
	struct worker worker;
	struct http_tier tier;
	struct engine_thread engine; /* only its counters are used */
	struct listen_def def;
	struct connections *connections;
	struct event *accept, *resume;
	int fd;
	struct page { /* /metrics as it was last written */
		struct evbuffer *text;
		u64 at_ns, took_ns;
	} page;
} metrics = { .fd = -1 };

static struct daemon *daemon_of(const struct http1_request *request)
{
	return request->worker->tier->owner;
}

/* ------------------------------------------------------------------ pages */

/* Frees the body. */
static void send_text(struct http1_request *request, int status, const char *type,
		      struct evbuffer *body)
{
	size_t size = evbuffer_get_length(body);

	http1_reply_header(request, "x-content-type-options", "nosniff");
	http1_reply(request, status, type, evbuffer_pullup(body, -1), size);
	evbuffer_free(body);
}

/* Fills in the request tier's listeners and connections, then writes all metrics. */
static void write_metrics(struct daemon *d, struct evbuffer *body)
{
	size_t count = d->http ? listen_count(d->http->listeners) : 0;
	struct metrics *m = &d->metrics;

	m->listener = calloc(count + 1, sizeof(*m->listener));
	m->listener_count = m->listener ? count : 0;
	for (size_t i = 0; i < m->listener_count; i++) {
		struct connection_stats stats;

		m->listener[i].address = listen_stats(d->http->listeners, i, &stats)->address;
		m->listener[i].evicted = stats.evicted;
		m->listener[i].refused = stats.refused;
		m->listener[i].refused_address = stats.refused_address;
	}
	m->connections = 0;
	for (u32 i = 0; d->http && i < d->http->worker_count; i++)
		m->connections +=
			__atomic_load_n(&d->http->worker[i].connections, __ATOMIC_RELAXED);
	metrics_write(m, body);
	free(m->listener);
	m->listener = NULL;
}

/* Scrapes take a fifth of the main thread at most: one that comes sooner gets the page of the one
 * before. */
#define PAGE_SHARE 5

/* A copy of the page, to be freed; NULL: out of memory. */
static struct evbuffer *metrics_page(struct daemon *d)
{
	struct page *page = &metrics.page;
	struct evbuffer *copy = evbuffer_new();
	u64 now_ns = clock_mono_ns(), cpu_ns = clock_cpu_ns();

	if (!page->text)
		page->text = evbuffer_new();
	if (!copy || !page->text)
		goto no_memory;
	if (!page->at_ns || now_ns - page->at_ns >= PAGE_SHARE * page->took_ns) {
		evbuffer_drain(page->text, evbuffer_get_length(page->text));
		write_metrics(d, page->text);
		page->at_ns = now_ns;
		page->took_ns = clock_cpu_ns() - cpu_ns;
	}
	if (evbuffer_add(copy, evbuffer_pullup(page->text, -1), evbuffer_get_length(page->text)) ==
	    0)
		return copy;
no_memory:
	if (copy)
		evbuffer_free(copy);
	return NULL;
}

static void on_metrics(struct http1_request *request)
{
	struct evbuffer *body = metrics_page(daemon_of(request));

	if (!body) {
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	send_text(request, 200, "text/plain; version=0.0.4; charset=utf-8", body);
}

static void on_health(struct http1_request *request)
{
	http1_reply(request, 200, TEXT, "ok\n", 3);
}

static void on_ready(struct http1_request *request)
{
	const struct daemon *d = daemon_of(request);
	bool ready = d->running.image && !d->packets.stopping;
	const char *words = ready ? "ready\n" : "not ready\n";

	http1_reply(request, ready ? 200 : 503, TEXT, words, strlen(words));
}

static void on_status(struct http1_request *request)
{
	struct daemon *d = daemon_of(request);
	const struct dp_table_stats *table = view_table(&d->packets);
	struct evbuffer *body = evbuffer_new();
	char text[32];

	if (!body) {
		http1_reply_problem(request, 503, "out of memory");
		return;
	}
	evbuffer_add_printf(body, "sluiced %s, up %s\n\n", SLUICE_VERSION,
			    duration_format((clock_mono_ns() - d->commands.started_mono_ns) /
						    SL_NS_PER_SEC * SL_NS_PER_SEC,
					    text, sizeof(text)));
	evbuffer_add_printf(body, "rules        generation %llu, %zu limits, %zu live changes\n",
			    d->running.generation, d->running.policy->limit_count,
			    json_array_size(d->running.live));
	evbuffer_add_printf(body, "last reload  %s at %s\n",
			    d->running.reload.ok ? "good" : "REFUSED",
			    clock_format_utc(d->running.reload.at_utc_ns, text, sizeof(text)));
	evbuffer_add_printf(body, "banned       %zu sources\n", bans_look(&d->packets)->active);
	evbuffer_add_printf(body, "sessions     %u logged in, never dropped\n",
			    d->running.image->sessions);
	evbuffer_add_printf(body, "table        %llu of %llu places in use\n\n", table->live,
			    table->ways);
	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		const struct iface *iface = &d->packets.iface[slot];

		if (view_iface_shown(iface))
			evbuffer_add_printf(body,
					    "%-16s %-8s %.0f packets/s passed, %.0f dropped\n",
					    iface->name, view_iface_state(iface),
					    d->packets.iface_rate[slot].rate[SL_ACT_PASS] +
						    d->packets.iface_rate[slot].rate[SL_ACT_TAG],
					    d->packets.iface_rate[slot].rate[SL_ACT_DROP]);
	}
	evbuffer_add_printf(body, "\n/metrics  /healthz  /readyz\n");
	send_text(request, 200, TEXT, body);
}

/* ------------------------------------------------------------------ signals */

static void send_json(struct http1_request *request, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (text)
		http1_reply(request, 200, "application/json", text, strlen(text));
	else
		http1_reply_problem(request, 503, "out of memory");
	free(text);
	json_decref(json);
}

/* The file is read at each such request: they are few, and a new token holds at once. */
static bool has_token(struct http1_request *request, const char *path, struct bytes sent)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	static u64 logged_ns;
	struct token token;
	struct sl_err err;

	if (token_read(path, &token, &err) < 0) {
		if (clock_mono_ns() - logged_ns > 60 * SL_NS_PER_SEC) {
			logged_ns = clock_mono_ns();
			log_error("requests with a token are refused: %s", err.message);
		}
		http1_reply_problem(request, 503,
				    "the token file cannot be read; the log has the reason");
		return false;
	}
	token_digest(sent, digest);
	if (sent.len && token_is(&token, digest))
		return true;
	/* A browser asks for a name, which is ignored, and a password. */
	http1_reply_header(request, "www-authenticate", "Bearer, Basic realm=\"sluice\"");
	http1_reply_problem(request, 401,
			    sent.len ? "unknown token"
				     : "authentication required: send the "
				       "token of metrics.token_file");
	return false;
}

/*
 * From this host, too: any local user and a reverse proxy connect from it, and a web page in a
 * browser. None of them has the token.
 */
static bool may_set(struct http1_request *request, const char *token_file)
{
	if (token_file)
		return has_token(request, token_file, http1_token(request));
	http1_reply_problem(request, 403,
			    "load signals need a token: set metrics.token_file and send it, or "
			    "run sluicectl load-signal set");
	return false;
}

static void on_signal(struct http1_request *request)
{
	struct daemon *d = daemon_of(request);
	size_t len = request->path.len - strlen(LOAD_SIGNALS_PATH);
	u64 now_ns = clock_mono_ns();
	json_error_t error;
	struct sl_err err;
	char name[128];
	json_t *json;
	int r;

	if (!may_set(request, d->running.policy->metrics_token_file))
		return;
	if (request->body.len > BODY_MAX) {
		http1_reply_problem(request, 413, "the body is too large: at most 4 KiB");
		return;
	}
	if (len >= sizeof(name)) {
		http1_reply_problem(request, 404, "no such load signal: the name is too long");
		return;
	}
	memcpy(name, request->path.at + strlen(LOAD_SIGNALS_PATH), len);
	name[len] = '\0';
	json = request->body.len ? json_loadb(request->body.at, request->body.len,
					      JSON_REJECT_DUPLICATES, &error)
				 : NULL;
	r = load_signal_set(&d->scales, name, json, now_ns, &err);
	json_decref(json);
	if (!r)
		send_json(request, load_signal_to_json(&d->scales, name, now_ns));
	else
		http1_reply_problem(request,
				    r == -ENOENT   ? 404
				    : r == -EEXIST ? 409
				    : r == -EINVAL ? 400
						   : 500,
				    err.message);
}

/* ------------------------------------------------------------------ the status page */

/* The token as the password of Authorization: Basic, decoded into buf, or as elsewhere. */
static struct bytes page_token(const struct http1_request *request, char *buf, size_t size)
{
	struct bytes value = http1_find(request, "authorization");
	const char *colon;
	int len;

	if (value.len < 6 || strncasecmp(value.at, "basic ", 6) != 0 ||
	    (value.len - 6) / 4 * 3 + 3 > size)
		return http1_token(request);
	len = EVP_DecodeBlock((unsigned char *)buf, (const unsigned char *)value.at + 6,
			      (int)value.len - 6);
	for (size_t i = value.len; len > 0 && i && value.at[i - 1] == '='; i--)
		len--;
	colon = len > 0 ? memchr(buf, ':', (size_t)len) : NULL;
	if (!colon)
		return (struct bytes){ NULL, 0 };
	return (struct bytes){ colon + 1, (size_t)(buf + len - colon - 1) };
}

/*
 * The page names sources and users. With a token file it needs the token; without one it is for
 * this host, and not for a web page whose name was made to resolve to 127.0.0.1.
 */
static bool may_read_page(struct http1_request *request)
{
	const char *token_file = daemon_of(request)->running.policy->metrics_token_file;
	char buf[2048];

	if (token_file)
		return has_token(request, token_file, page_token(request, buf, sizeof(buf)));
	if (request->peer->local && http1_is_host_address(request))
		return true;
	http1_reply_problem(
		request, 403,
		request->peer->local
			? "Host is neither localhost nor an address"
			: "the status page is for this host; for others with metrics.token_file");
	return false;
}

/* A browser gets the page, others get text. */
static void on_root(struct http1_request *request)
{
	struct bytes accept = http1_find(request, "accept");

	if (!accept.at || !memmem(accept.at, accept.len, "text/html", 9))
		on_status(request);
	else if (may_read_page(request))
		status_page_html(request);
}

static void on_status_json(struct http1_request *request)
{
	if (may_read_page(request))
		status_page_json(request, daemon_of(request));
}

static const struct http1_route routes[] = {
	{ "GET", "/metrics", API_OTHER, 0, on_metrics },
	{ "GET", "/healthz", API_OTHER, 0, on_health },
	{ "GET", "/readyz", API_OTHER, 0, on_ready },
	{ "GET", "/", API_OTHER, 0, on_root },
	{ "GET", "/page.js", API_OTHER, 0, status_page_script },
	{ "GET", "/page.css", API_OTHER, 0, status_page_style },
	{ "GET", "/status.json", API_OTHER, 0, on_status_json },
	{ "PUT", LOAD_SIGNALS_PATH, API_OTHER, HTTP1_BODY_OF_ANY, on_signal },
};
static const struct http1_routes all_routes = { routes, sizeof(routes) / sizeof(routes[0]) };

/* ------------------------------------------------------------------ the listener */

static void on_accept(evutil_socket_t listening, short what, void *arg)
{
	struct peer_info peer = { .uid = (uid_t)-1, .listener = &metrics.def };
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t size = sizeof(addr);
	struct bufferevent *bev;
	int fd = accept4(listening, (struct sockaddr *)&addr, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		static const struct timeval pause = { .tv_usec = 100000 };

		/* Out of descriptors or memory: a pause instead of a spin. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			event_del(metrics.accept);
			event_add(metrics.resume, &pause);
		}
		return;
	}
	peer.local = bind_is_loopback((struct sockaddr *)&addr);
	peer.connection = connection_begin(metrics.connections, 0, fd, (struct sockaddr *)&addr);
	bev = peer.connection
		      ? bufferevent_socket_new(metrics.worker.base, fd, BEV_OPT_CLOSE_ON_FREE)
		      : NULL;
	if (!bev) {
		connection_end(peer.connection);
		close(fd);
		return;
	}
	metrics.worker.connections++;
	frontend_http1.accept(&metrics.worker, bev, &peer);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	event_add(metrics.accept, NULL);
}

int metrics_listen_start(struct daemon *d, const char *listen, struct sl_err *err)
{
	const char *token_file = d->running.file->metrics_token_file;
	static const struct connection_bounds bounds = {
		.max = CONNECTIONS_MAX,
		.max_per_address = CONNECTIONS_PER_ADDRESS_MAX,
	};
	char name[BIND_NAME_MAX];
	struct token token;
	struct sl_err why;
	int r;

	if (!listen)
		return 0;
	if (token_file && token_read(token_file, &token, &why) < 0)
		return sl_err_set(err, EINVAL, "metrics.token_file: %.400s", why.message);
	metrics.tier = (struct http_tier){ .owner = d };
	metrics.engine = (struct engine_thread){ .stats = worker_stats_new() };
	metrics.worker = (struct worker){ .tier = &metrics.tier,
					  .base = d->base,
					  .engine = &metrics.engine };
	metrics.def = (struct listen_def){ .address = strdup(listen), .kind = LISTEN_HTTP };
	metrics.connections = connections_new(&bounds, 1, 0);
	if (status_page_start() < 0 || !metrics.engine.stats || !metrics.def.address ||
	    !metrics.connections || frontend_http1.start(&metrics.worker) < 0)
		return sl_err_set(err, ENOMEM, "out of memory");
	http1_serve(&metrics.worker, &all_routes);
	r = bind_listener(&metrics.def, NULL, 0, NULL, &metrics.fd, name, &why);
	if (r < 0)
		return sl_err_set(err, -r, "metrics.listen: %.400s", why.message);
	metrics.accept = event_new(d->base, metrics.fd, EV_READ | EV_PERSIST, on_accept, d);
	metrics.resume = evtimer_new(d->base, on_resume, NULL);
	return metrics.accept && metrics.resume && event_add(metrics.accept, NULL) == 0
		       ? 0
		       : sl_err_set(err, ENOMEM, "out of memory");
}

void metrics_listen_stop(void)
{
	if (metrics.accept)
		event_free(metrics.accept);
	if (metrics.resume)
		event_free(metrics.resume);
	if (metrics.page.text)
		evbuffer_free(metrics.page.text);
	if (metrics.worker.base)
		frontend_http1.stop(&metrics.worker);
	if (metrics.fd >= 0)
		close(metrics.fd);
	status_page_stop();
	connections_free(metrics.connections);
	worker_stats_free(metrics.engine.stats);
	free(metrics.def.address);
	memset(&metrics, 0, sizeof(metrics));
	metrics.fd = -1;
}
