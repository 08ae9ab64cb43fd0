/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observe.h - what happened, for people: the last events in memory, and those who follow them.
 *
 *     observe.c        the last events, and where each goes
 *     observe_json.c   an event as JSON
 *     journal.c        events to journald
 *     history.c        events on disk; history_db.c, history_answer.c
 *
 * An event is a dropped packet (a sample), a state change of a source (a limit refuses it, it is
 * banned, pushed down, blocked, and the end of these), a change of the configuration.
 *
 * Knows: events as names and addresses. Does not know: the data plane, the configuration, the
 * request tier; control and daemon turn what they see into events. May use: lib.
 *
 * All functions run on the main thread. `o` NULL is fine everywhere: nothing is observed.
 */
#ifndef SLUICE_OBSERVE_OBSERVE_H
#define SLUICE_OBSERVE_OBSERVE_H

#include <jansson.h>

#include "lib/addr.h"
#include "lib/err.h"
#include "lib/value_hash.h"

#define OBSERVE_KEPT 2688 /* events in memory; each kind has a room of its own */
#define OBSERVE_LATEST 32 /* of each kind, see observe_latest() */
#define OBSERVE_NAME 128
#define OBSERVE_TEXT 192

enum observed_kind {
	OBSERVED_DROP,	   /* a packet was dropped */
	OBSERVED_OVER,	   /* a limit refused a source that it had not refused before */
	OBSERVED_RELEASED, /* that source has all of the limit again */
	OBSERVED_BAN,
	OBSERVED_UNBAN,
	OBSERVED_PUSHDOWN, /* also from one step to another */
	OBSERVED_PUSHDOWN_END,
	OBSERVED_BLOCK,
	OBSERVED_UNBLOCK,
	OBSERVED_REFUSED, /* the HTTP tier refused a request of a value */
	OBSERVED_CHANGE,  /* another change of the configuration */
	OBSERVED_TRAFFIC, /* a heavy source in a minute; only in the history */
	OBSERVED_KINDS,
};

struct observed {
	u64 seq; /* 1, 2, ...; set by observe_note() */
	u64 utc_ns;
	enum observed_kind kind;
	bool has_source, is_packet;
	bool plain; /* the value is no secret */
	struct sl_prefix source;
	char name[OBSERVE_NAME];      /* of the limit; OBSERVED_REFUSED: the rule, "domain/path" */
	char value[OBSERVE_NAME];     /* OBSERVED_REFUSED: of the rule, as `user list` shows it */
	const char *reason, *verdict; /* static; NULL: none */
	char detail[OBSERVE_TEXT];
	u64 packets;	/* it stands for so many, on average */
	bool estimated; /* `packets` is not exact; of the history */
	u16 counter;	/* OBSERVED_DROP: of history_scale() */
	/* is_packet: */
	char interface[16];
	struct sl_prefix dst; /* a single address */
	u32 length;
	u16 sport, dport;
	u8 proto;     /* 0: unknown, and so are the ports */
	u16 captured; /* bytes of `frame` */
	u8 link;      /* enum sl_link: what `frame` begins with */
	u8 frame[SL_RING_FRAME];
};

/* What a reader asks for. */
struct observe_filter {
	u64 after;    /* only events with a greater seq */
	size_t count; /* at most so many, the latest; with `after` the first */
	int kind;     /* -1: any */
	bool has_within;
	struct sl_prefix within; /* only sources of it */
	const char *name;	 /* NULL: any limit or rule */
	bool frames;
};

struct observe;
struct history;

/* `history_size` 0: without a history. */
int observe_open(const char *state_dir, u64 history_size, u64 history_age_ns, struct observe **ret,
		 struct sl_err *err);
void observe_close(struct observe *o);
/* Each second. */
void observe_tick(struct observe *o);
/* The clock was set: what is kept for a time is kept as long as before. */
void observe_step(struct observe *o, s64 step_ns);
/* NULL: there is none. */
struct history *observe_history(struct observe *o);

/* Takes an event; fills in seq, and utc_ns where it is 0. */
void observe_note(struct observe *o, struct observed *event);
/* Shorter, of an event without a packet; each text may be NULL. */
void observe_tell(struct observe *o, enum observed_kind kind, const struct sl_prefix *source,
		  const char *name, const char *value, const char *detail);

/*
 * A request that the HTTP tier refused. The same rule and value is an event at most once a minute,
 * and at most OBSERVE_REFUSED_A_SECOND are in a second.
 */
void observe_refused(struct observe *o, const char *rule, const char *value, bool plain);

/*
 * So many events of a kind, and of a limit or rule (NULL: not known), were not noted. For the
 * history: its answers name what they may lack.
 */
void observe_not_noted(struct observe *o, enum observed_kind kind, const char *name, u64 count);
#define OBSERVE_REFUSED_A_SECOND 100

/*
 * {"events": [...], "next": seq of the last one, "missed": at most so many of the wanted kind after
 * `after` were overwritten unread, "kept_since": UTC, from when on all events of the wanted kind
 * are kept}.
 */
json_t *observe_read(struct observe *o, const struct observe_filter *filter);
/* The last OBSERVE_LATEST of each kind in one array, by time. JSON null where o is NULL. */
json_t *observe_latest(const struct observe *o);
u64 observe_count(const struct observe *o, enum observed_kind kind);

/* The value for all but the control socket: its hash, in buf, unless it is plain or empty. */
const char *observed_value(const struct observed *event, char buf[VALUE_HASH_TEXT]);
const char *observed_kind_name(enum observed_kind kind);
int observed_kind_parse(const char *text); /* -1: none has this name */
json_t *observed_to_json(const struct observed *event, bool frame);

/*
 * journal.c: to journald, as fields SLUICE_EVENT, SLUICE_SOURCE and so on; drops are not, and of
 * each other kind at most 20 a second. Returns false where it was not sent.
 */
bool observed_to_journal(const struct observed *event);

#endif
