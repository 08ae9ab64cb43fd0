// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * decision_log.c - see decision_log.h.
 *
 * Values are untrusted bytes. They are hashed as value_hash.h has it: one value has one hash, and
 * the file does not contain it. With `values: plain` they are escaped byte by byte, so each line is
 * valid JSON in ASCII.
 */
#include "request/engine/decision_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "request/engine/observe.h"
#include "lib/file.h"
#include "lib/value_hash.h"
#include "lib/out.h"
#include "request/rules/rule_private.h"

#define BUFFER_BYTES (256 * 1024)
#define LINE_BYTES 8192
#define VALUE_SHOWN 256 /* bytes of a plain value */

struct buffer {
	pthread_mutex_t lock; /* held for a copy, at most */
	char *at;
	size_t len;
	u64 lost;
	u32 count; /* decisions since the last line; the worker's own */
};

struct decision_log {
	struct sl_seed seed;
	u32 workers;
	char *spare; /* the main thread's: it is swapped with a worker's and written */
	int fd;
	struct stat opened;
	bool failing;
	struct buffer buffer[];
};

struct decision_log *decision_log_new(u32 workers)
{
	struct decision_log *log = calloc(1, sizeof(*log) + workers * sizeof(log->buffer[0]));

	if (!log)
		return NULL;
	log->fd = -1;
	log->seed = value_hash_seed();
	log->workers = workers;
	for (u32 i = 0; i < workers; i++)
		pthread_mutex_init(&log->buffer[i].lock, NULL);
	return log;
}

void decision_log_free(struct decision_log *log)
{
	if (!log)
		return;
	for (u32 i = 0; i < log->workers; i++) {
		pthread_mutex_destroy(&log->buffer[i].lock);
		free(log->buffer[i].at);
	}
	if (log->fd >= 0)
		close(log->fd);
	free(log->spare);
	free(log);
}

/* ------------------------------------------------------------------ a line */

static void out_plain(struct out *out, struct bytes bytes)
{
	for (size_t i = 0; i < bytes.len && i < VALUE_SHOWN; i++) {
		unsigned char c = (unsigned char)bytes.at[i];

		if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
			out_char(out, (char)c);
		} else {
			/* Byte by byte: the text may not be UTF-8. */
			out_text(out, "\\u00");
			out_hex(out, c, 2);
		}
	}
	if (bytes.len > VALUE_SHOWN)
		out_text(out, "...");
}

static void out_when(struct out *out)
{
	struct timespec now;
	char text[40];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.", &tm);
	out_text(out, text);
	for (long scale = 100000000; scale >= 1000000; scale /= 10)
		out_char(out, (char)('0' + now.tv_nsec / scale % 10));
	out_char(out, 'Z');
}

/* How values are written. Clients choose their length: a line that is too long is written with
 * less. */
enum values { VALUES_PLAIN, VALUES_BY_RULE, VALUES_HASHED, VALUES_LEFT_OUT };

/* `descriptor` NULL: of the rule of the domain. */
static void out_descriptor(struct out *out, const struct decision_log *log,
			   const struct request_descriptor *descriptor,
			   const struct response_status *status, enum values values)
{
	out_text(out, "{\"code\":");
	out_text(out, status->over ? "\"OVER_LIMIT\"" : "\"OK\"");
	out_text(out, ",\"rule\":");
	if (status->rule) {
		out_char(out, '"');
		out_json(out, status->rule->domain);
		out_char(out, '/');
		out_json(out, status->rule->path);
		out_char(out, '"');
	} else {
		out_text(out, "null");
	}
	if (status->shadow)
		out_text(out, ",\"shadow\":true");
	for (u32 i = 0; i < status->candidates; i++) {
		out_text(out, i ? ",{\"limit\":\"" : ",\"candidates\":[{\"limit\":\"");
		out_json(out, status->candidate[i].limit->name);
		out_text(out, status->candidate[i].over ? "\",\"code\":\"OVER_LIMIT\"}"
							: "\",\"code\":\"OK\"}");
		if (i + 1 == status->candidates)
			out_char(out, ']');
	}
	if (status->ban_left_ns) {
		out_text(out, ",\"banned_ms\":");
		out_u64(out, status->ban_left_ns / 1000000);
	}
	if (descriptor) {
		out_text(out, ",\"hits\":");
		if (descriptor->refund)
			out_char(out, '-');
		out_u64(out, descriptor->hits);
	}
	out_text(out, ",\"remaining\":");
	out_u64(out, status->remaining);
	out_text(out, ",\"entries\":[");
	for (u32 i = 0; descriptor && values != VALUES_LEFT_OUT && i < descriptor->count; i++) {
		struct bytes value = descriptor->entry[i].value;

		if (status->rule)
			value = rule_value(status->rule, i, value);
		out_text(out, i ? ",[\"" : "[\"");
		out_plain(out, descriptor->entry[i].key);
		out_text(out, "\",\"");
		if (values == VALUES_PLAIN ||
		    (values == VALUES_BY_RULE && status->rule && status->rule->values_plain))
			out_plain(out, value);
		else
			out_hex(out, hash_bytes(log->seed, 0, value.at, value.len), 16);
		out_text(out, "\"]");
	}
	out_text(out, "]}");
}

static void out_line(struct out *out, const struct decision_log *log, const struct request *request,
		     const struct response *response, enum values values)
{
	static const char *const code[] = { "OK", "OVER_LIMIT", "CLOSED", "ERROR" };
	char text[SL_PREFIX_TEXT];

	out_text(out, "{\"at\":\"");
	out_when(out);
	out_text(out, "\",\"api\":\"");
	out_text(out, request_api_name(request->api));
	out_text(out, "\",\"domain\":\"");
	out_plain(out, request->domain);
	out_text(out, "\",\"code\":\"");
	out_text(out, code[response->code]);
	out_char(out, '"');
	if (request->peek)
		out_text(out, ",\"peek\":true");
	if (request->report)
		out_text(out, ",\"report\":true");
	if (request->has_source) {
		out_text(out, ",\"source\":\"");
		sl_prefix_format(&request->source, text, sizeof(text));
		if (values == VALUES_PLAIN)
			out_text(out, text);
		else
			out_hex(out, hash_bytes(log->seed, 0, text, strlen(text)), 16);
		out_char(out, '"');
	}
	out_text(out, ",\"delayed_ms\":");
	out_u64(out, response->delayed_ns / 1000000);
	out_text(out, ",\"statuses\":[");
	for (u32 i = 0; i < response_statuses(response); i++) {
		if (i)
			out_char(out, ',');
		out_descriptor(out, log, i < request->count ? &request->descriptor[i] : NULL,
			       &response->status[i], values);
	}
	out_text(out, values == VALUES_LEFT_OUT ? "],\"cut\":true}\n" : "]}\n");
}

void decision_log_note(struct engine_thread *thread, const struct request *request,
		       const struct response *response)
{
	const struct engine *engine = thread->engine;
	struct decision_log *log = engine->log;
	enum values values;
	struct buffer *buffer;
	char line[LINE_BYTES];
	struct out out;

	buffer = &log->buffer[thread->index];
	if (++buffer->count < __atomic_load_n(&engine->log_every, __ATOMIC_RELAXED))
		return;
	buffer->count = 0;
	values = __atomic_load_n(&engine->log_plain, __ATOMIC_RELAXED) ? VALUES_PLAIN
								       : VALUES_BY_RULE;
	do {
		out_begin(&out, line, sizeof(line));
		out_line(&out, log, request, response, values);
	} while (out.len > sizeof(line) && values++ < VALUES_LEFT_OUT);
	pthread_mutex_lock(&buffer->lock);
	if (!buffer->at)
		buffer->at = malloc(BUFFER_BYTES);
	if (!buffer->at || out.len > sizeof(line) || buffer->len + out.len > BUFFER_BYTES) {
		buffer->lost++;
	} else {
		memcpy(buffer->at + buffer->len, line, out.len);
		buffer->len += out.len;
	}
	pthread_mutex_unlock(&buffer->lock);
}

/* ------------------------------------------------------------------ the file */

/* Log rotation renames the file: the path is then another file, or none. */
static int open_file(struct decision_log *log, const char *path)
{
	struct stat st;

	if (log->fd >= 0 && (stat(path, &st) < 0 || st.st_ino != log->opened.st_ino ||
			     st.st_dev != log->opened.st_dev)) {
		close(log->fd);
		log->fd = -1;
	}
	if (log->fd < 0)
		log->fd = open(path,
			       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
				       O_NOFOLLOW,
			       0640);
	if (log->fd < 0 || fstat(log->fd, &log->opened) < 0)
		return -errno;
	if (S_ISREG(log->opened.st_mode))
		return 0;
	close(log->fd);
	log->fd = -1;
	return -EINVAL;
}

static size_t take(struct decision_log *log, struct buffer *buffer)
{
	size_t len;
	char *full;

	pthread_mutex_lock(&buffer->lock);
	len = buffer->len;
	if (len) {
		full = buffer->at;
		buffer->at = log->spare;
		buffer->len = 0;
		log->spare = full;
	}
	pthread_mutex_unlock(&buffer->lock);
	return len;
}

static void lose(struct buffer *buffer, const char *text, size_t len)
{
	u64 lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	pthread_mutex_lock(&buffer->lock);
	buffer->lost += lines;
	pthread_mutex_unlock(&buffer->lock);
}

int decision_log_drain(struct decision_log *log, const char *path)
{
	int r = path ? open_file(log, path) : 0;

	for (u32 i = 0; i < log->workers; i++) {
		size_t len = take(log, &log->buffer[i]);

		if (!len || !path)
			continue;
		if (!r)
			r = file_write(log->fd, log->spare, len);
		if (r < 0)
			lose(&log->buffer[i], log->spare, len);
	}
	if (r < 0 && log->failing)
		return 0;
	log->failing = r < 0;
	return r;
}

u64 decision_log_lost(const struct decision_log *log)
{
	u64 lost = 0;

	for (u32 i = 0; log && i < log->workers; i++)
		lost += __atomic_load_n(&log->buffer[i].lost, __ATOMIC_RELAXED);
	return lost;
}
