// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * syslog.c - access logs over UDP, charged as reports.
 *
 * This frontend adds no delay to a request: the proxy sends a line after its response. There is no
 * reply, so errors are counted and logged at intervals: lines that are not reports, and lines that
 * the kernel dropped. One worker reads each socket; limits are charged above their rate, too, as by
 * /v1/report.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "request/server/bind.h"
#include "request/engine/measure.h"
#include "request/engine/observe.h"
#include "request/frontends/syslog/syslog.h"
#include "request/frontends/syslog/syslog_line.h"
#include "request/server/worker.h"
#include "lib/clock.h"
#include "lib/log.h"

#define LINE_MAX_BYTES 65536 /* the largest datagram */
#define BATCH 16
#define BATCHES_MAX 16		       /* then other connections of this worker run */
#define BUFFER_BYTES (8 * 1024 * 1024) /* of the socket: covers a pause of the worker */
#define WARN_NS (10 * SL_NS_PER_SEC)
#define AHEAD_NS (300 * SL_NS_PER_SEC) /* tolerance for wrong clocks */

/* observe_request()'s codes */
enum { SYSLOG_GOOD, SYSLOG_MALFORMED, SYSLOG_LOST };

struct syslog_listener {
	struct syslog_listener *next;
	struct worker *worker;
	const struct listen_def *def;
	struct event *event;
	int fd;
	u32 lost; /* the kernel's count since the socket was made */
	u64 malformed, logged_malformed, warned_ns;
	u64 logged_lost, all_lost;
	char reason[512]; /* of the last malformed line */
	char line[BATCH][LINE_MAX_BYTES];
};

/* ------------------------------------------------------------------ what went wrong */

static void warn(struct syslog_listener *listener)
{
	u64 now = clock_read_ns(CLOCK_MONOTONIC);

	if (listener->warned_ns && now - listener->warned_ns < WARN_NS)
		return;
	listener->warned_ns = now;
	if (listener->malformed != listener->logged_malformed)
		log_warn("http: syslog %s: ignored %llu invalid lines; the last one: %s",
			 listener->def->address, listener->malformed - listener->logged_malformed,
			 listener->reason);
	if (listener->all_lost != listener->logged_lost)
		log_warn("http: syslog %s: lost %llu lines that came faster than they were read",
			 listener->def->address, listener->all_lost - listener->logged_lost);
	listener->logged_malformed = listener->malformed;
	listener->logged_lost = listener->all_lost;
}

static void note_malformed(struct syslog_listener *listener, const char *reason)
{
	observe_request(listener->worker->engine, API_SYSLOG, SYSLOG_MALFORMED);
	listener->malformed++;
	snprintf(listener->reason, sizeof(listener->reason), "%s", reason);
	warn(listener);
}

/* Each datagram has the kernel's count of those dropped before it. */
static void note_lost(struct syslog_listener *listener, struct msghdr *message)
{
	struct cmsghdr *control;
	u32 lost;

	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SO_RXQ_OVFL)
			continue;
		memcpy(&lost, CMSG_DATA(control), sizeof(lost));
		if (lost == listener->lost)
			continue;
		observe_request_count(listener->worker->engine, API_SYSLOG, SYSLOG_LOST,
				      lost - listener->lost);
		listener->all_lost += lost - listener->lost;
		listener->lost = lost;
		warn(listener);
	}
}

/* ------------------------------------------------------------------ lines */

static void on_response(const struct request *request, const struct response *response, void *arg)
{
}

/* A line has no token: any client of the listener may report; more rights need a Unix socket. */
static u32 rights_of(struct syslog_listener *listener, const struct peer_info *peer,
		     struct bytes domain)
{
	bool bad_token;
	u32 rights = caller_rights(listener->worker->tier, peer, (struct bytes){ "", 0 }, domain,
				   &bad_token);

	return peer->unix_socket ? rights : rights | MAY_REPORT;
}

static void charge(struct syslog_listener *listener, struct json_request *item,
		   const struct peer_info *peer)
{
	struct request *request = &item->request;
	u64 now = clock_read_ns(CLOCK_REALTIME);

	if (request->at_utc_ns > now + AHEAD_NS) {
		note_malformed(listener, "at: more than 5 minutes ahead");
		return;
	}
	if (request->at_utc_ns > now)
		request->at_utc_ns = 0;
	request->api = API_SYSLOG;
	request->rights = rights_of(listener, peer, request->domain);
	if (!(request->rights & MAY_REPORT)) {
		note_malformed(listener,
			       "permission denied: the caller may not report to this domain, see "
			       "http.callers");
		return;
	}
	observe_request(listener->worker->engine, API_SYSLOG, SYSLOG_GOOD);
	/* Refused requests charge nothing: a limit that counts its refusals would never reopen. */
	if (item->http_status == 429)
		request->count = 0;
	if (item->http_status == 429 && !request->release.count)
		return;
	measure_note(&listener->worker->engine->engine->measures, request->domain,
		     item->http_status, item->latency_ns, clock_read_ns(CLOCK_MONOTONIC));
	if (request->count || request->release.count)
		request_submit(listener->worker->engine, request, on_response, NULL);
}

static void take_line(struct syslog_listener *listener, const char *line, size_t len,
		      const struct sockaddr *from)
{
	struct peer_info peer = { .uid = (uid_t)-1, .listener = listener->def };
	struct sl_err err = { .line = 0 };
	struct json_request *item;

	if (!bind_admits(listener->def, from)) {
		note_malformed(listener, "the sender is not among the listener's clients");
		return;
	}
	peer.unix_socket = from->sa_family == AF_UNIX;
	peer.local = peer.unix_socket || bind_is_loopback(from);
	if (syslog_line_read(line, len, &item, &err)) {
		note_malformed(listener, err.message);
		return;
	}
	charge(listener, item, &peer);
	json_request_free(item);
}

/* Reads up to BATCH datagrams; returns their number. */
static int take_batch(struct syslog_listener *listener)
{
	struct sockaddr_storage from[BATCH];
	char control[BATCH][64] __attribute__((aligned(8)));
	struct iovec bytes[BATCH];
	struct mmsghdr message[BATCH];
	int count;

	for (int i = 0; i < BATCH; i++) {
		from[i].ss_family = AF_UNIX; /* of a socket without a name */
		bytes[i] = (struct iovec){ listener->line[i], LINE_MAX_BYTES };
		message[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &bytes[i],
			.msg_iovlen = 1,
			.msg_control = control[i],
			.msg_controllen = sizeof(control[i]),
		};
	}
	count = recvmmsg(listener->fd, message, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++) {
		note_lost(listener, &message[i].msg_hdr);
		take_line(listener, listener->line[i], message[i].msg_len,
			  (struct sockaddr *)&from[i]);
	}
	return count;
}

static void on_lines(evutil_socket_t fd, short what, void *arg)
{
	for (int i = 0; i < BATCHES_MAX; i++)
		if (take_batch(arg) < BATCH)
			return;
}

/* ------------------------------------------------------------------ sockets */

static int syslog_receive(struct worker *worker, int fd, const struct listen_def *def)
{
	struct syslog_listener *listener = calloc(1, sizeof(*listener));
	int bytes = BUFFER_BYTES, on = 1;

	if (!listener)
		return -ENOMEM;
	listener->worker = worker;
	listener->def = def;
	listener->fd = fd;
	listener->next = worker->frontend[LISTEN_SYSLOG];
	worker->frontend[LISTEN_SYSLOG] = listener;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	listener->event = event_new(worker->base, fd, EV_READ | EV_PERSIST, on_lines, listener);
	return listener->event && event_add(listener->event, NULL) == 0 ? 0 : -ENOMEM;
}

/* Queued lines are charged here, or by the daemon that inherits the socket. */
static void syslog_finish(struct worker *worker)
{
	for (struct syslog_listener *listener = worker->frontend[LISTEN_SYSLOG]; listener;
	     listener = listener->next) {
		on_lines(listener->fd, EV_READ, listener);
		event_del(listener->event);
	}
}

static void syslog_stop(struct worker *worker)
{
	struct syslog_listener *listener = worker->frontend[LISTEN_SYSLOG], *next;

	for (; listener; listener = next) {
		next = listener->next;
		if (listener->event)
			event_free(listener->event);
		free(listener);
	}
	worker->frontend[LISTEN_SYSLOG] = NULL;
}

const struct frontend frontend_syslog = {
	.kind = LISTEN_SYSLOG,
	.name = "syslog",
	.receive = syslog_receive,
	.finish = syslog_finish,
	.stop = syslog_stop,
};
