// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* access_log.c - see access_log.h. */
#include "replay/access_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "request/frontends/syslog/syslog_line.h"
#include "request/rules/request_text.h"

static void skip(struct bytes *text, size_t count)
{
	count = count < text->len ? count : text->len;
	text->at += count;
	text->len -= count;
}

/* The text up to `c`, and past it; false without one. */
static bool take_to(struct bytes *text, char c, struct bytes *ret)
{
	const char *at = memchr(text->at, c, text->len);

	if (!at)
		return false;
	*ret = (struct bytes){ text->at, at - text->at };
	skip(text, ret->len + 1);
	return true;
}

/* The next "quoted" text; \" inside it stays as it is. */
static bool take_quoted(struct bytes *text, struct bytes *ret)
{
	struct bytes before;

	if (!take_to(text, '"', &before))
		return false;
	*ret = (struct bytes){ text->at, 0 };
	while (text->len && *text->at != '"')
		skip(text, *text->at == '\\' ? 2 : 1);
	ret->len = text->at - ret->at;
	if (!text->len)
		return false;
	skip(text, 1);
	return true;
}

/* "10/Oct/2000:13:55:36 -0700", also with a fraction, and without a zone: then it counts as UTC. */
static bool parse_time(struct bytes text, u64 *ret_utc_ns)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char copy[48], month[4], sign = '+';
	int zone_h = 0, zone_m = 0, used = 0;
	u64 fraction = 0, unit = SL_NS_PER_SEC;
	const char *at, *found;
	struct tm tm = { 0 };
	s64 seconds;

	snprintf(copy, sizeof(copy), "%.*s", (int)(text.len < 47 ? text.len : 47), text.at);
	if (sscanf(copy, "%2d/%3[A-Za-z]/%4d:%2d:%2d:%2d%n", &tm.tm_mday, month, &tm.tm_year,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) < 6 ||
	    !used)
		return false;
	found = strlen(month) == 3 ? strstr(months, month) : NULL;
	if (!found || (found - months) % 3 || tm.tm_year < 1970)
		return false;
	tm.tm_mon = (found - months) / 3;
	tm.tm_year -= 1900;
	at = copy + used;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9' && unit > 1; at++) {
			unit /= 10;
			fraction += (*at - '0') * unit;
		}
	sscanf(at, " %c%2d%2d", &sign, &zone_h, &zone_m);
	seconds = timegm(&tm) - (sign == '-' ? -1 : 1) * (zone_h * 3600 + zone_m * 60);
	if (seconds < 0)
		return false;
	*ret_utc_ns = (u64)seconds * SL_NS_PER_SEC + fraction;
	return true;
}

static u32 parse_status(struct bytes text)
{
	u32 status = 0;

	for (size_t i = 0; i < 3; i++) {
		if (i >= text.len || text.at[i] < '0' || text.at[i] > '9')
			return 0;
		status = status * 10 + (text.at[i] - '0');
	}
	return status;
}

/* ------------------------------------------------------------------ three formats */

struct parts {
	struct bytes source, user, call; /* call: "GET /path HTTP/1.1" */
	u64 utc_ns;
	u32 status;
};

/* 192.0.2.7 - alice [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 */
static bool read_combined(struct bytes line, struct parts *ret)
{
	struct bytes identity, time;

	if (!take_to(&line, ' ', &ret->source) || !take_to(&line, ' ', &identity) ||
	    !take_to(&line, '[', &ret->user) || !take_to(&line, ']', &time) ||
	    !parse_time(time, &ret->utc_ns) || !take_quoted(&line, &ret->call))
		return false;
	while (ret->user.len && ret->user.at[ret->user.len - 1] == ' ')
		ret->user.len--;
	skip(&line, 1);
	ret->status = parse_status(line);
	return true;
}

/* ... 192.0.2.7:5000 [06/Feb/2009:12:14:14.655] web app/one 10/0/30/69/109 200 2750 ... "GET /
 * HTTP/1.1" */
static bool read_haproxy(struct bytes line, struct parts *ret)
{
	struct bytes before, time, word;

	if (!take_to(&line, '[', &before))
		return false;
	/* "haproxy[77]: ": the process id, not the time. */
	while (!take_to(&line, ']', &time) || !parse_time(time, &ret->utc_ns))
		if (!take_to(&line, '[', &before))
			return false;
	while (before.len && before.at[before.len - 1] == ' ')
		before.len--;
	ret->source = before;
	for (size_t i = before.len; i; i--)
		if (before.at[i - 1] == ' ') {
			ret->source = (struct bytes){ before.at + i, before.len - i };
			break;
		}
	skip(&line, 1);
	for (u32 i = 0; i < 4; i++)
		if (!take_to(&line, ' ', &word))
			return false;
	ret->status = parse_status(word);
	return take_quoted(&line, &ret->call);
}

/* [2016-04-15T20:17:00.310Z] "POST /api HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "agent" ... */
static bool read_envoy(struct bytes line, struct parts *ret)
{
	struct bytes time, forwarded;
	size_t at;

	skip(&line, 1);
	if (!take_to(&line, ']', &time) || !request_time_parse(time, &ret->utc_ns) ||
	    !take_quoted(&line, &ret->call))
		return false;
	skip(&line, 1);
	ret->status = parse_status(line);
	if (!take_quoted(&line, &forwarded))
		return true;
	/* The last address is the one that Envoy itself added. */
	for (at = forwarded.len; at && forwarded.at[at - 1] != ',' && forwarded.at[at - 1] != ' ';
	     at--)
		;
	ret->source = (struct bytes){ forwarded.at + at, forwarded.len - at };
	return true;
}

/* ------------------------------------------------------------------ descriptors */

static void add(struct access_log *log, const char *key, struct bytes value, const char *key2,
		struct bytes value2)
{
	struct request_descriptor *descriptor = &log->descriptor[log->request.count++];

	descriptor->count = 0;
	descriptor->beyond = descriptor->refund = false;
	descriptor->hits = 1;
	descriptor->limit_unit = REQUEST_UNIT_UNKNOWN;
	request_add_entry(descriptor, (struct bytes){ key, strlen(key) }, value);
	if (key2)
		request_add_entry(descriptor, (struct bytes){ key2, strlen(key2) }, value2);
}

static int make_request(struct access_log *log, const struct parts *parts, struct sl_err *err)
{
	static const struct bytes none = { "", 0 };
	struct bytes call = parts->call, word, path = none, user = parts->user;
	struct sl_prefix source;

	if (!log->domain.len)
		return sl_err_set(err, EINVAL,
				  "the line names no domain, and the rules have more than one: "
				  "--domain names it");
	if (take_to(&call, ' ', &word) && take_to(&call, ' ', &word)) {
		/* In place: the line is a copy. */
		path = (struct bytes){ word.at, request_path_normal(word, (char *)word.at) };
	}
	log->request = (struct request){ .domain = log->domain,
					 .descriptor = log->descriptor,
					 .at_utc_ns = parts->utc_ns };
	if (request_source_parse(parts->source, &source)) {
		sl_prefix_format(&source, log->source, sizeof(log->source));
		log->request.source = source;
		log->request.has_source = true;
		add(log, "source", (struct bytes){ log->source, strlen(log->source) }, NULL, none);
	}
	if (path.len)
		add(log, "path", path, NULL, none);
	if (user.len && !bytes_equal(user, "-")) {
		add(log, "user", user, NULL, none);
		if (path.len)
			add(log, "user", user, "path", path);
	}
	log->status = parts->status;
	return 0;
}

static int read_json(struct access_log *log, const char *line, size_t len, struct sl_err *err)
{
	int r = syslog_line_read(line, len, &log->json, err);

	if (r)
		return r;
	log->request = log->json->request;
	log->status = log->json->http_status;
	/* It is decided as if it came now; a refund stays a report. */
	log->request.report = false;
	for (u32 i = 0; i < log->request.count; i++)
		log->request.report |= log->request.descriptor[i].refund;
	return 0;
}

void access_log_clear(struct access_log *log)
{
	if (log->json)
		json_request_free(log->json);
	log->json = NULL;
}

enum format { FORMAT_JSON, FORMAT_COMBINED, FORMAT_HAPROXY, FORMAT_ENVOY };

static enum format format_of(struct bytes line)
{
	struct sl_prefix source;
	struct bytes word;

	if (line.len && *line.at == '[')
		return FORMAT_ENVOY;
	if (memmem(line.at, line.len, "{\"", 2) &&
	    (*line.at == '{' || !memmem(line.at, line.len, "] \"", 3)))
		return FORMAT_JSON;
	return take_to(&line, ' ', &word) && request_source_parse(word, &source) ? FORMAT_COMBINED
										 : FORMAT_HAPROXY;
}

int access_log_read(struct access_log *log, const char *line, size_t len, struct sl_err *err)
{
	static bool (*const read[])(struct bytes line, struct parts * ret) = {
		[FORMAT_COMBINED] = read_combined,
		[FORMAT_HAPROXY] = read_haproxy,
		[FORMAT_ENVOY] = read_envoy,
	};
	struct bytes text = { log->text, len };
	struct parts parts = { .status = 0 };
	enum format format;

	access_log_clear(log);
	if (len >= sizeof(log->text))
		return sl_err_set(err, EINVAL, "longer than %d bytes", ACCESS_LOG_LINE);
	memcpy(log->text, line, len);
	log->text[len] = '\0';
	format = format_of(text);
	if (format == FORMAT_JSON)
		return read_json(log, line, len, err);
	if (read[format](text, &parts))
		return make_request(log, &parts, err);
	return sl_err_set(err, EINVAL,
			  "no request; accepted: JSON as the daemon receives it, nginx's "
			  "combined, HAProxy's httplog, Envoy's default format");
}
