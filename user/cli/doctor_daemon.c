// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor_daemon.c - see doctor.h: the daemon, its configuration, table, listeners, cluster. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/endpoint.h"
#include "lib/links.h"
#include "lib/units.h"
#include "version.h"

#define CONNECT_MS 1000
#define UNDECIDED_NS (3600 * SL_NS_PER_SEC) /* one as long ago is mended */
#define BUCKET_BYTES 32			    /* of the table, with its keys and records */

static void daemon_runs(struct doctor *d)
{
	const char *version = text_of(d->status, "version");

	if (!d->status)
		doctor_found(d, d->not_running ? LEVEL_BAD : LEVEL_UNKNOWN,
			     d->not_running ? "systemctl start sluiced" : "sudo sluicectl doctor",
			     "%s", d->no_daemon);
	else if (strcmp(version, SLUICE_VERSION) != 0)
		doctor_found(d, LEVEL_WARN, "systemctl restart sluiced", "sluiced %s, sluicectl %s",
			     version, SLUICE_VERSION);
	else
		doctor_found(d, LEVEL_OK, NULL, "sluiced %s, pid %lld", version,
			     number_of(d->status, "pid"));
}

static void configuration(struct doctor *d)
{
	const json_t *notes = json_object_get(d->config, "notes");
	size_t count = json_array_size(notes);
	char mend[4200];

	snprintf(mend, sizeof(mend), "sluicectl check %s", d->config_path);
	if (!d->config && !d->config_error[0])
		doctor_found(d, LEVEL_WARN,
			     "install the package's configuration, or name yours with -c",
			     "there is no %s", d->config_path);
	else if (!d->config)
		doctor_found(d, geteuid() ? LEVEL_UNKNOWN : LEVEL_BAD, mend, "%s", d->config_error);
	else if (count)
		doctor_found(d, LEVEL_WARN, mend, "%s: %zu note%s, the first: %s", d->config_path,
			     count, count == 1 ? "" : "s",
			     json_string_value(json_array_get(notes, 0)));
	else
		doctor_found(d, LEVEL_OK, NULL, "%s: %lld limits, %lld request rules",
			     d->config_path, number_of(d->config, "limits"),
			     number_of(d->config, "rules"));
}

/* The interface itself: whether it has an XDP program; the daemon's word alone is not enough. */
static bool has_program(const char *ifname)
{
	struct link link;

	return link_get(if_nametoindex(ifname), false, &link) == 0 &&
	       link.xdp_mode != XDP_ATTACHED_NONE;
}

/* The first interface whose packets meet no limit; "": each has a program. */
static const char *unlimited(const struct doctor *d, const json_t *interfaces)
{
	const json_t *one;
	size_t i;

	json_array_foreach(interfaces, i, one) {
		const char *name = text_of(one, "name"), *state = text_of(one, "state"),
			   *now = text_of(one, "renamed");

		if (d->status && !strcmp(state, "moved"))
			continue;
		if ((d->status && strcmp(state, "native") && strcmp(state, "generic")) ||
		    !has_program(now[0] ? now : name))
			return name;
	}
	return "";
}

/* As in force, without a daemon as in the file. */
static void limits_meet_packets(struct doctor *d)
{
	const json_t *from = d->status ? d->status : d->config;
	const char *bare = unlimited(d, json_object_get(from, "interfaces"));
	long long limits = number_of(from, "limits");
	size_t count = json_array_size(json_object_get(from, "interfaces"));
	char mend[96];

	if (!from)
		return;
	if (limits && !count)
		doctor_found(d, LEVEL_BAD, "sluicectl attach IFACE, then sluicectl save",
			     "interfaces: is empty: no packet meets the %lld limits", limits);
	else if (limits && bare[0]) {
		snprintf(mend, sizeof(mend),
			 d->status ? "sluicectl attach %.32s" : "systemctl start sluiced", bare);
		doctor_found(
			d, LEVEL_BAD, mend,
			"no program is attached to %s: its packets meet none of the %lld limits",
			bare, limits);
	} else
		doctor_found(d, LEVEL_OK, NULL, "%lld limits, %zu interfaces, each with a program",
			     limits, count);
}

static void last_reload(struct doctor *d)
{
	const json_t *reload = json_object_get(d->status, "reload");
	const json_t *http = json_object_get(json_object_get(d->status, "http"), "reload");
	const json_t *differing = json_object_get(d->status, "differing"),
		     *first = json_array_get(differing, 0);

	if (!reload)
		return;
	if (!json_is_true(json_object_get(reload, "ok")))
		doctor_found(d, LEVEL_BAD, "correct the file, then sluicectl reload", "failed: %s",
			     text_of(reload, "error"));
	else if (http && !json_is_true(json_object_get(http, "ok")))
		doctor_found(d, LEVEL_BAD, "correct the rules, then sluicectl reload",
			     "of the request rules failed: %s", text_of(http, "error"));
	else if (first)
		doctor_found(d, LEVEL_WARN, "sluicectl diff shows all, sluicectl reload reads them",
			     "%zu files differ from what is in force, the first: %s: %s",
			     json_array_size(differing), text_of(first, "file"),
			     text_of(first, "why"));
	else if (number_of(d->status, "live_changes"))
		doctor_found(d, LEVEL_WARN, "sluicectl diff shows them, sluicectl save writes them",
			     "%lld live changes are not in the file",
			     number_of(d->status, "live_changes"));
	else
		doctor_found(d, LEVEL_OK, NULL, "good, and nothing is changed live");
}

static void holds(struct doctor *d)
{
	if (!json_is_true(json_object_get(d->status, "packet_tier")))
		return;
	if (!json_is_true(json_object_get(d->status, "pins")))
		doctor_found(d, LEVEL_BAD, "systemctl restart sluiced",
			     "the pins are gone: limits end with the daemon");
	else if (!json_is_true(json_object_get(d->status, "can_attach")))
		doctor_found(d, LEVEL_BAD, "systemctl restart sluiced",
			     "the attach helper has exited");
	else
		doctor_found(d, LEVEL_OK, NULL, "the maps are pinned, the attach helper runs");
}

/* Packets without room, and sources that made room for others, since the counters began. */
static void table(struct doctor *d)
{
	const json_t *table = json_object_get(d->status, "table"), *limit, *price;
	double live = (double)number_of(table, "live"), ways = (double)number_of(table, "ways");
	long long full = 0, evicted = 0;
	char mend[96], least[256] = "";
	size_t i;

	if (!json_is_true(json_object_get(d->status, "packet_tier")) || ways <= 0)
		return;
	json_array_foreach(json_object_get(d->stats, "limits"), i, limit) {
		full += number_of(limit, "full");
		evicted += number_of(limit, "evicted");
	}
	price = json_array_get(json_object_get(d->status, "table_prices"), 0);
	if (price)
		snprintf(least, sizeof(least),
			 "; limit %.63s: full after %lld packets from forged sources",
			 text_of(price, "limit"), number_of(price, "packets"));
	snprintf(mend, sizeof(mend), "table: {buckets: %.0fK} (%.0f MB), then restart sluiced",
		 ways * 4 / 1000, ways * 4 * BUCKET_BYTES / 1e6);
	doctor_found(
		d,
		full || live > 0.8 * ways		? LEVEL_BAD
		: evicted || live > 0.5 * ways || price ? LEVEL_WARN
							: LEVEL_OK,
		mend,
		"%.0f of %.0f entries in use (%.1f%%), %lld sources evicted, %lld packets without "
		"room%s",
		live, ways, live / ways * 100, evicted, full, least);
}

/* ------------------------------------------------------------------ proxies */

/* 0 if it accepts a connection within a second, or -errno. */
static int try_connect(const struct endpoint *at)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
	    error = 0;
	socklen_t length = sizeof(error);
	struct pollfd wait = { .fd = fd, .events = POLLOUT };

	if (fd < 0)
		return -errno;
	if (connect(fd, &at->any, at->size) < 0) {
		error = errno;
		if (error == EINPROGRESS) {
			if (poll(&wait, 1, CONNECT_MS) <= 0)
				error = ETIMEDOUT;
			else
				getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
		}
	}
	close(fd);
	return -error;
}

/* Established connections to a local port: of proxies, and other clients. */
static int count_clients(u16 port_be16)
{
	static const char *const file[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	char line[512];
	int count = 0;

	for (size_t i = 0; i < 2; i++) {
		FILE *in = fopen(file[i], "re");

		while (in && fgets(line, sizeof(line), in)) {
			unsigned int port, state;

			if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) ==
				    2 &&
			    port == ntohs(port_be16) && state == 1)
				count++;
		}
		if (in)
			fclose(in);
	}
	return count;
}

/* Our connection is accepted. Each proxy that runs here needs the right to connect, too. */
static void socket_of(struct doctor *d, const char *text, const char *path)
{
	struct doctor_socket access;

	doctor_socket(path, &access);
	doctor_found(d,
		     !access.refused[0] ? LEVEL_OK
		     : access.able	? LEVEL_WARN
					: LEVEL_BAD,
		     access.mend, "%s accepts connections (%s)%s%s", text, access.who,
		     access.refused[0] ? "; " : "", access.refused);
}

static void listener(struct doctor *d, const char *text)
{
	struct endpoint at;
	int r;

	if (endpoint_parse(text, &at))
		return;
	r = try_connect(&at);
	if (r == -EACCES || r == -EPERM)
		doctor_found(d, geteuid() ? LEVEL_UNKNOWN : LEVEL_BAD, "sudo sluicectl doctor",
			     "%s: %s", text, strerror(-r));
	else if (r < 0)
		doctor_found(
			d, LEVEL_BAD,
			"sluicectl status shows the listeners; from another network namespace they are "
			"not to be reached",
			"%s does not accept: %s", text, strerror(-r));
	else if (at.any.sa_family == AF_UNIX)
		socket_of(d, text, at.un.sun_path);
	else
		doctor_found(d, LEVEL_OK, NULL,
			     "%s accepts connections; %d clients are connected now", text,
			     count_clients(at.v4.sin_port));
}

static void proxies(struct doctor *d)
{
	const json_t *listen = json_object_get(json_object_get(d->status, "http"), "listen"), *one;
	size_t i;

	json_array_foreach(listen, i, one)
		listener(d, json_string_value(one));
}

/* What the frontends could not decide: the proxies' examples let such requests pass. */
static void undecided(struct doctor *d)
{
	const json_t *undecided = json_object_get(json_object_get(d->status, "http"), "undecided");
	const json_t *last = json_object_get(undecided, "last");
	char ago[32];

	if (!undecided)
		return;
	if (!last) {
		doctor_found(d, LEVEL_OK, NULL,
			     "all requests could be read, and their callers may check");
		return;
	}
	duration_format((u64)number_of(last, "ago_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC, ago,
			sizeof(ago));
	doctor_found(d, (u64)number_of(last, "ago_ns") < UNDECIDED_NS ? LEVEL_BAD : LEVEL_OK,
		     text_of(last, "reason")[0] == 'c'
			     ? "give the caller the right in http.callers, or send its token"
			     : "correct what the proxy sends; docs/http-api.md has the form",
		     "%lld requests got an error in place of a "
		     "decision, the last %s ago: %s: %s",
		     number_of(undecided, "requests"), ago, text_of(last, "api"),
		     text_of(last, "detail"));
}

static void cluster(struct doctor *d)
{
	const json_t *cluster = json_object_get(d->status, "cluster"), *peer, *differs = NULL;
	const char *gone = NULL, *node = NULL;
	size_t i;

	if (!json_is_object(cluster))
		return;
	json_array_foreach(json_object_get(cluster, "peers"), i, peer) {
		if (!json_is_true(json_object_get(peer, "alive")) &&
		    !json_is_true(json_object_get(peer, "left")))
			gone = text_of(peer, "node");
		if (json_is_object(json_object_get(peer, "differs"))) {
			differs = json_object_get(peer, "differs");
			node = text_of(peer, "node");
		}
	}
	if (!json_is_true(json_object_get(cluster, "store_up")))
		doctor_found(d, LEVEL_BAD, "sluicectl cluster show has the error of each server",
			     "the store is unavailable");
	else if (gone)
		doctor_found(d, LEVEL_WARN, "sluicectl cluster show",
			     "the store is up; node %s is silent", gone);
	else if (differs)
		doctor_found(
			d, LEVEL_WARN,
			"sluicectl cluster show names all nodes; give them the same files, and make "
			"live changes on each",
			"limits or rules differ from node %s's since %s: %s", node,
			text_of(differs, "since"), text_of(differs, "what"));
	else
		doctor_found(d, LEVEL_OK, NULL, "the store is up, %lld nodes",
			     number_of(cluster, "nodes"));
}

static void deferred(struct doctor *d)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(d->deferred, "rules"), i, rule) {
		const char *name = text_of(rule, "rule");

		if (json_is_true(json_object_get(rule, "unreached")))
			doctor_found(
				d, LEVEL_BAD,
				"on_limit: defer needs a cluster section with a Redis in mode single or "
				"sentinel; sluicectl cluster show has its state",
				"%s refuses requests that it should "
				"defer",
				name);
		else if (json_is_true(json_object_get(rule, "not_durable")))
			doctor_found(d, LEVEL_WARN, "set appendonly yes in redis.conf",
				     "requests that %s defers are lost when "
				     "Redis stops",
				     name);
		else
			doctor_found(
				d, LEVEL_OK, NULL,
				"%s: %lld wait, %lld were released and are not done, %lld are dead",
				name, number_of(rule, "waiting"), number_of(rule, "released"),
				number_of(rule, "dead"));
	}
}

static void saved(struct doctor *d)
{
	const char *why = text_of(d->status, "unsaved"), *lost = text_of(d->status, "not_kept");

	if (!d->status)
		return;
	if (why[0])
		doctor_found(
			d, LEVEL_BAD,
			"df -h shows the disk; with room for state_dir it is saved within a second",
			"%s: what "
			"is in force is not saved",
			why);
	if (lost[0])
		doctor_found(d, LEVEL_BAD, "the next change, or restart, writes the file again",
			     "%s: a restart loses what it has", lost);
	if (!why[0] && !lost[0])
		doctor_found(d, LEVEL_OK, NULL, "all that is in force is saved");
}

const struct check doctor_daemon_checks[] = {
	{ "daemon",
	  "Programs that are attached limit without it, but nothing changes them, and requests are not decided.",
	  daemon_runs },
	{ "configuration", "A file with an error is refused at the next start or reload.",
	  configuration },
	{ "interfaces", "A limit holds only for packets of attached interfaces.",
	  limits_meet_packets },
	{ "last reload",
	  "After a failed one the previous rules are in force, not those of the file.",
	  last_reload },
	{ "state", "What is not saved is gone after a restart.", saved },
	{ "pins", "Limits outlive the daemon, and interfaces can be attached, only with these.",
	  holds },
	{ "table",
	  "A full table has no bucket for new sources: on_full decides about their packets.",
	  table },
	{ "listener", "A proxy that does not reach it lets its requests pass, or fails them.",
	  proxies },
	{ "requests",
	  "A proxy lets a request pass, or fails it, when it gets an error in place of a decision.",
	  undecided },
	{ "cluster",
	  "Without the store each node counts for itself; a limit over nodes is what the rules of each node are.",
	  cluster },
	{ "deferred", "Requests for later are in Redis alone.", deferred },
	{ 0 }
};
