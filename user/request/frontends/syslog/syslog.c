// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * syslog.c - access logs over UDP, charged as reports.
 *
 * The frontend that costs a request nothing: the proxy sends a line after its response. There is
 * no reply, so errors are counted and logged now and then: lines that are no reports, and those
 * that the kernel dropped. One worker reads each socket; limits are charged above their rate,
 * too, as by /v1/report.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "request/server/bind.h"
#include "request/engine/observe.h"
#include "request/frontends/syslog/syslog.h"
#include "request/frontends/syslog/syslog_line.h"
#include "request/server/worker.h"
#include "lib/log.h"

#define LINE_MAX_BYTES 65536		/* the largest datagram */
#define BATCH 16
#define BATCHES_MAX 16			/* then other connections of this worker run */
#define BUFFER_BYTES (8 * 1024 * 1024)	/* of the socket: covers a pause of ours */
#define WARN_NS (10 * SL_NS_PER_SEC)
#define AHEAD_NS (300 * SL_NS_PER_SEC)	/* tolerance for wrong clocks */

/* observe_request()'s codes */
enum { SYSLOG_GOOD, SYSLOG_MALFORMED, SYSLOG_LOST };

struct syslog_listener {
	struct syslog_listener *next;
	struct worker *worker;
	const struct listen_def *def;
	struct event *event;
	int fd;
	u32 lost;			/* the kernel's count since the socket was made */
	u64 malformed, logged_malformed, warned_ns;
	u64 logged_lost, all_lost;
	char reason[512];		/* of the last malformed line */
	char line[BATCH][LINE_MAX_BYTES];
};

static u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (u64)now.tv_sec * SL_NS_PER_SEC + now.tv_nsec;
}

/* ------------------------------------------------------------------ what went wrong */

static void warn(struct syslog_listener *ear)
{
	u64 now = clock_ns(CLOCK_MONOTONIC);

	if (ear->warned_ns && now - ear->warned_ns < WARN_NS)
		return;
	ear->warned_ns = now;
	if (ear->malformed != ear->logged_malformed)
		log_warn("http: syslog %s: ignored %llu invalid lines; the last one: %s",
			 ear->def->address, ear->malformed - ear->logged_malformed, ear->reason);
	if (ear->all_lost != ear->logged_lost)
		log_warn("http: syslog %s: lost %llu lines that came faster than they were read",
			 ear->def->address, ear->all_lost - ear->logged_lost);
	ear->logged_malformed = ear->malformed;
	ear->logged_lost = ear->all_lost;
}

static void note_malformed(struct syslog_listener *ear, const char *reason)
{
	observe_request(ear->worker->engine, API_SYSLOG, SYSLOG_MALFORMED);
	ear->malformed++;
	snprintf(ear->reason, sizeof(ear->reason), "%s", reason);
	warn(ear);
}

/* Each datagram has the kernel's count of those dropped before it. */
static void note_lost(struct syslog_listener *ear, struct msghdr *message)
{
	struct cmsghdr *control;
	u32 lost;

	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SO_RXQ_OVFL)
			continue;
		memcpy(&lost, CMSG_DATA(control), sizeof(lost));
		if (lost == ear->lost)
			continue;
		observe_request_count(ear->worker->engine, API_SYSLOG, SYSLOG_LOST, lost - ear->lost);
		ear->all_lost += lost - ear->lost;
		ear->lost = lost;
		warn(ear);
	}
}

/* ------------------------------------------------------------------ lines */

static void on_response(const struct request *request, const struct response *response, void *arg)
{
}

/* A line has no token: any client of the listener may report; more rights need a Unix socket. */
static u32 rights_of(struct syslog_listener *ear, const struct peer_info *peer, struct bytes domain)
{
	bool bad_token;
	u32 rights = caller_rights(ear->worker->tier, peer, (struct bytes){ "", 0 }, domain,
				   &bad_token);

	return peer->unix_socket ? rights : rights | MAY_REPORT;
}

static void charge(struct syslog_listener *ear, struct json_request *item,
		   const struct peer_info *peer)
{
	struct request *request = &item->request;
	u64 now = clock_ns(CLOCK_REALTIME);

	if (request->at_utc_ns > now + AHEAD_NS) {
		note_malformed(ear, "at: more than 5 minutes ahead");
		return;
	}
	if (request->at_utc_ns > now)
		request->at_utc_ns = 0;
	request->api = API_SYSLOG;
	request->rights = rights_of(ear, peer, request->domain);
	if (!(request->rights & MAY_REPORT)) {
		note_malformed(ear,
			       "permission denied: the caller may not report to this domain, see "
			       "http.callers");
		return;
	}
	observe_request(ear->worker->engine, API_SYSLOG, SYSLOG_GOOD);
	/* Refused requests charge nothing: a limit that counts its refusals would never reopen. */
	if (request->count && item->http_status != 429)
		request_submit(ear->worker->engine, request, on_response, NULL);
}

static void take_line(struct syslog_listener *ear, const char *line, size_t len,
		      const struct sockaddr *from)
{
	struct peer_info peer = { .uid = (uid_t)-1, .listener = ear->def };
	struct sl_err err = { .line = 0 };
	struct json_request *item;

	if (!bind_admits(ear->def, from)) {
		note_malformed(ear, "the sender is not among the listener's clients");
		return;
	}
	peer.unix_socket = from->sa_family == AF_UNIX;
	peer.local = peer.unix_socket || bind_is_loopback(from);
	if (syslog_line_read(line, len, &item, &err)) {
		note_malformed(ear, err.message);
		return;
	}
	charge(ear, item, &peer);
	json_request_free(item);
}

/* Reads up to BATCH datagrams; returns how many. */
static int take_batch(struct syslog_listener *ear)
{
	struct sockaddr_storage from[BATCH];
	char control[BATCH][64] __attribute__((aligned(8)));
	struct iovec bytes[BATCH];
	struct mmsghdr message[BATCH];
	int count;

	for (int i = 0; i < BATCH; i++) {
		from[i].ss_family = AF_UNIX;		/* of a socket without a name */
		bytes[i] = (struct iovec){ ear->line[i], LINE_MAX_BYTES };
		message[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i], .msg_namelen = sizeof(from[i]),
			.msg_iov = &bytes[i], .msg_iovlen = 1,
			.msg_control = control[i], .msg_controllen = sizeof(control[i]),
		};
	}
	count = recvmmsg(ear->fd, message, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++) {
		note_lost(ear, &message[i].msg_hdr);
		take_line(ear, ear->line[i], message[i].msg_len, (struct sockaddr *)&from[i]);
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
	struct syslog_listener *ear = calloc(1, sizeof(*ear));
	int bytes = BUFFER_BYTES, on = 1;

	if (!ear)
		return -ENOMEM;
	ear->worker = worker;
	ear->def = def;
	ear->fd = fd;
	ear->next = worker->frontend[LISTEN_SYSLOG];
	worker->frontend[LISTEN_SYSLOG] = ear;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	ear->event = event_new(worker->base, fd, EV_READ | EV_PERSIST, on_lines, ear);
	return ear->event && event_add(ear->event, NULL) == 0 ? 0 : -ENOMEM;
}

/* Queued lines are charged here, or by the daemon that inherits the socket. */
static void syslog_drain(struct worker *worker)
{
	for (struct syslog_listener *ear = worker->frontend[LISTEN_SYSLOG]; ear; ear = ear->next) {
		on_lines(ear->fd, EV_READ, ear);
		event_del(ear->event);
	}
}

static void syslog_stop(struct worker *worker)
{
	struct syslog_listener *ear = worker->frontend[LISTEN_SYSLOG], *next;

	for (; ear; ear = next) {
		next = ear->next;
		if (ear->event)
			event_free(ear->event);
		free(ear);
	}
	worker->frontend[LISTEN_SYSLOG] = NULL;
}

const struct frontend frontend_syslog = {
	.kind = LISTEN_SYSLOG,
	.name = "syslog", .receive = syslog_receive, .drain = syslog_drain, .stop = syslog_stop,
};
