// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* journal.c - events to journald; see observe.h. Without journald sending is a system call that
 * fails. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-journal.h>

#include "lib/clock.h"
#include "lib/visible.h"
#include "packet/observe/observe.h"

#define A_SECOND 20
#define FIELDS_MAX 16

struct entry {
	struct iovec field[FIELDS_MAX];
	int count;
};

static void add(struct entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct entry *entry, const char *format, ...)
{
	va_list args;
	char *text;
	int size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0)
		return;
	if (entry->count == FIELDS_MAX) {
		free(text);
		return;
	}
	entry->field[entry->count++] = (struct iovec){ text, (size_t)size };
}

static void add_text(struct entry *entry, const char *name, const char *value)
{
	if (value && value[0])
		add(entry, "%s=%s", name, value);
}

/* Fields are untrusted: those of one line for people. */
static void add_visible(struct entry *entry, const char *name, const char *value)
{
	char *visible = visible_new(value, VISIBLE_LINE);

	add_text(entry, name, visible);
	free(visible);
}

/* The main thread alone asks. Each kind has its own: a flood of refusals hides no change. */
static bool has_budget(enum observed_kind kind)
{
	static u64 second, count[OBSERVED_KINDS];
	u64 now = clock_mono_ns() / SL_NS_PER_SEC;

	if (now != second) {
		second = now;
		memset(count, 0, sizeof(count));
	}
	return count[kind]++ < A_SECOND;
}

bool observed_to_journal(const struct observed *event)
{
	bool rule = event->kind == OBSERVED_REFUSED;
	char message[2 * OBSERVE_NAME + OBSERVE_TEXT + 128];
	struct entry entry = { .count = 0 };
	char source[SL_PREFIX_TEXT] = "", hash[VALUE_HASH_TEXT];
	const char *value = observed_value(event, hash);
	int rc;

	if (event->kind == OBSERVED_DROP || !has_budget(event->kind))
		return false;
	if (event->has_source)
		sl_prefix_format(&event->source, source, sizeof(source));
	snprintf(message, sizeof(message), "%s%s%s%s%s%s%s%s%s", observed_kind_name(event->kind),
		 source[0] ? " " : "", source,
		 event->name[0] ? rule ? " by rule " : " by limit " : "", event->name,
		 event->value[0] ? " of " : "", value, event->detail[0] ? ": " : "", event->detail);
	add_visible(&entry, "MESSAGE", message);
	add(&entry, "PRIORITY=6");
	add(&entry, "SYSLOG_IDENTIFIER=sluiced");
	add_text(&entry, "SLUICE_EVENT", observed_kind_name(event->kind));
	add_text(&entry, "SLUICE_SOURCE", source);
	add_text(&entry, rule ? "SLUICE_RULE" : "SLUICE_LIMIT", event->name);
	add_visible(&entry, "SLUICE_VALUE", value);
	add_text(&entry, "SLUICE_REASON", event->reason);
	add_text(&entry, "SLUICE_VERDICT", event->verdict);
	add_text(&entry, "SLUICE_INTERFACE", event->interface);
	add_text(&entry, "SLUICE_DETAIL", event->detail);
	rc = sd_journal_sendv(entry.field, entry.count);
	for (int i = 0; i < entry.count; i++)
		free(entry.field[i].iov_base);
	return rc >= 0;
}
