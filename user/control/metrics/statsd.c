// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * statsd.c - see statsd.h.
 *
 * Our own, since no library of Debian has a StatsD client: a line for each series, as many in a
 * datagram as an Ethernet frame holds (the servers' documents have 1432 bytes).
 */
#include "control/metrics/statsd.h"

#include <errno.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>


#define DATAGRAM_MAX 1432
#define LINE_MAX_BYTES 1024	/* a longer one is not sent */

/* A counter as it was sent last; the key is NAME{LABELS} within `text`. */
struct sent {
	const char *key;
	size_t length;
	long double value;
};

struct statsd {
	int fd;
	char *prefix;
	bool tags;
	char *text;			/* the last scrape; NULL: none yet */
	struct sent *sent;		/* sorted */
	size_t count;
	char datagram[DATAGRAM_MAX];
	size_t used;
};

static int by_key(const void *pa, const void *pb)
{
	const struct sent *a = pa, *b = pb;
	int order = memcmp(a->key, b->key, a->length < b->length ? a->length : b->length);

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

int statsd_new(const char *address, const char *prefix, bool tags, struct statsd **ret, struct sl_err *err)
{
	struct statsd *statsd = calloc(1, sizeof(*statsd));
	struct sockaddr_storage to;
	int size = sizeof(to), r;

	if (!statsd)
		return sl_err_set(err, ENOMEM, "out of memory");
	statsd->prefix = strdup(prefix);
	statsd->tags = tags;
	statsd->fd = -1;
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&to, &size) < 0) {
		r = sl_err_set(err, EINVAL, "statsd: '%.200s' is no address", address);
	} else {
		statsd->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = statsd->prefix && statsd->fd >= 0 &&
		    !connect(statsd->fd, (struct sockaddr *)&to, (socklen_t)size) ? 0 :
		    sl_err_set(err, errno, "statsd: %.200s: %s", address, strerror(errno));
	}
	if (r < 0) {
		statsd_free(statsd);
		return r;
	}
	*ret = statsd;
	return 0;
}

void statsd_free(struct statsd *statsd)
{
	if (!statsd)
		return;
	if (statsd->fd >= 0)
		close(statsd->fd);
	free(statsd->prefix);
	free(statsd->text);
	free(statsd->sent);
	free(statsd);
}

/* ------------------------------------------------------------------ datagrams */

static void flush(struct statsd *statsd)
{
	if (statsd->used)
		send(statsd->fd, statsd->datagram, statsd->used, MSG_DONTWAIT | MSG_NOSIGNAL);
	statsd->used = 0;
}

static void add_line(struct statsd *statsd, const char *line, size_t length)
{
	if (statsd->used + 1 + length > sizeof(statsd->datagram))
		flush(statsd);
	if (statsd->used)
		statsd->datagram[statsd->used++] = '\n';
	memcpy(statsd->datagram + statsd->used, line, length);
	statsd->used += length;
}

/* ------------------------------------------------------------------ one series */

/* What the protocol uses itself becomes '_'; of a part of a name also the dot. */
static void put_safe(FILE *out, const char *text, size_t length, bool in_name)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		fputc(c <= ' ' || strchr(":|@#,\"\\{}", c) || (in_name && strchr("./+", c)) ? '_' : c, out);
	}
}

/* The next LABEL="VALUE" at *at; false at the end. A quote in a value is escaped. */
static bool next_label(const char **at, const char *end, const char **ret_name, size_t *ret_name_length,
		       const char **ret_value, size_t *ret_value_length)
{
	const char *name = *at, *equals = memchr(name, '=', (size_t)(end - name)), *c;

	if (!equals || equals + 1 >= end)
		return false;
	for (c = equals + 2; c < end && *c != '"'; c++)
		c += *c == '\\' && c + 1 < end;
	*ret_name = name;
	*ret_name_length = (size_t)(equals - name);
	*ret_value = equals + 2;
	*ret_value_length = (size_t)(c - equals - 2);
	*at = c + 1 < end && c[1] == ',' ? c + 2 : end;
	return true;
}

/* "sluice_limit_packets_total" -> "PREFIX.limit_packets"; another program's name stays whole. */
static void put_name(FILE *out, const struct statsd *statsd, const char *name, size_t length)
{
	if (length > 6 && !memcmp(name + length - 6, "_total", 6))
		length -= 6;
	if (length > 7 && !memcmp(name, "sluice_", 7)) {
		name += 7;
		length -= 7;
	}
	fprintf(out, "%s.", statsd->prefix);
	put_safe(out, name, length, true);
}

/* The line of a series, NAME:VALUE|TYPE and its tags, into buf; 0: it is too long. */
static size_t write_line(const struct statsd *statsd, const struct sent *series, long double value,
			 char type, char *buf, size_t size)
{
	const char *brace = memchr(series->key, '{', series->length), *at, *end, *name, *label;
	size_t name_length, label_length;
	FILE *out = fmemopen(buf, size, "w");
	long written;
	char sign = '#';

	if (!out)
		return 0;
	end = series->key + series->length - (brace != NULL);
	put_name(out, statsd, series->key, brace ? (size_t)(brace - series->key) : series->length);
	at = brace ? brace + 1 : end;
	while (!statsd->tags && next_label(&at, end, &name, &name_length, &label, &label_length)) {
		fputc('.', out);
		put_safe(out, label, label_length, true);
	}
	fprintf(out, ":%.15Lg|%c", value, type);
	while (at < end && next_label(&at, end, &name, &name_length, &label, &label_length)) {
		fprintf(out, "%s%c", sign == '#' ? "|" : "", sign);
		put_safe(out, name, name_length, false);
		fputc(':', out);
		put_safe(out, label, label_length, false);
		sign = ',';
	}
	written = ftell(out);
	return fclose(out) || written < 0 || (size_t)written >= size ? 0 : (size_t)written;
}

static void send_series(struct statsd *statsd, const struct sent *series, bool counts)
{
	const struct sent *before = counts && statsd->count ?
		bsearch(series, statsd->sent, statsd->count, sizeof(*series), by_key) : NULL;
	long double value = series->value;
	char line[LINE_MAX_BYTES];
	size_t length;

	/* A counter below its last value began again. */
	if (before && before->value <= value)
		value -= before->value;
	if (counts && (!statsd->text || value == 0))
		return;
	length = write_line(statsd, series, value, counts ? 'c' : 'g', line, sizeof(line));
	if (length)
		add_line(statsd, line, length);
}

/* ------------------------------------------------------------------ one scrape */

/* A line "NAME{LABELS} VALUE" as a series; the value is behind the last blank. */
static bool parse_series(const char *line, size_t length, struct sent *ret)
{
	const char *blank = memrchr(line, ' ', length);

	if (!blank || blank == line)
		return false;
	*ret = (struct sent){ line, (size_t)(blank - line), strtold(blank + 1, NULL) };
	return true;
}

void statsd_send(struct statsd *statsd, const char *scrape, size_t size)
{
	struct sent *sent = NULL, series;
	char *text = strndup(scrape, size);
	size_t count = 0, room = 0;
	bool counts = false;

	for (char *line = text, *next; line && *line; line = next) {
		size_t length = strcspn(line, "\n");

		next = line + length + (line[length] == '\n');
		/* "# TYPE name counter" is before the samples; buckets of a histogram count, too. */
		if (!strncmp(line, "# TYPE ", 7))
			counts = memmem(line, length, " counter", 8) || memmem(line, length, " histogram", 10);
		if (line[0] == '#' || !parse_series(line, length, &series))
			continue;
		if (count == room) {
			struct sent *more = reallocarray(sent, room ? room * 2 : 256, sizeof(*sent));

			if (!more)
				break;
			sent = more;
			room = room ? room * 2 : 256;
		}
		send_series(statsd, &series, counts);
		if (counts)
			sent[count++] = series;
	}
	flush(statsd);
	if (!text)
		return;
	if (count)
		qsort(sent, count, sizeof(*sent), by_key);
	free(statsd->text);
	free(statsd->sent);
	statsd->text = text;
	statsd->sent = sent;
	statsd->count = count;
}
