// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* observe_json.c - an event as JSON, and the names of its kinds. */
#include <stdio.h>
#include <string.h>

#include "lib/json.h"
#include "packet/observe/observe.h"

static const char *const kinds[] = {
	[OBSERVED_DROP] = "drop",
	[OBSERVED_OVER] = "over",
	[OBSERVED_RELEASED] = "released",
	[OBSERVED_BAN] = "ban",
	[OBSERVED_UNBAN] = "unban",
	[OBSERVED_PUSHDOWN] = "pushdown",
	[OBSERVED_PUSHDOWN_END] = "pushdown_end",
	[OBSERVED_BLOCK] = "block",
	[OBSERVED_UNBLOCK] = "unblock",
	[OBSERVED_REFUSED] = "refused",
	[OBSERVED_CHANGE] = "change",
	[OBSERVED_TRAFFIC] = "traffic",
};
SL_STATIC_ASSERT(sizeof(kinds) / sizeof(kinds[0]) == OBSERVED_KINDS, "a name for each");

const char *observed_kind_name(enum observed_kind kind)
{
	return kind < OBSERVED_KINDS ? kinds[kind] : "unknown";
}

int observed_kind_parse(const char *text)
{
	for (int kind = 0; kind < OBSERVED_KINDS; kind++)
		if (!strcmp(text, kinds[kind]))
			return kind;
	return -1;
}

static json_t *proto_to_json(u8 proto)
{
	static const struct {
		u8 proto;
		const char *name;
	} known[] = { { 1, "icmp" },	{ 6, "tcp" },	 { 17, "udp" },
		      { 58, "icmpv6" }, { 132, "sctp" }, { 136, "udplite" } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].proto == proto)
			return json_string(known[i].name);
	return json_sprintf("%u", proto);
}

static json_t *frame_to_json(const struct observed *event)
{
	static const char digit[] = "0123456789abcdef";
	char text[2 * SL_RING_FRAME + 1];
	u32 length = event->captured < SL_RING_FRAME ? event->captured : SL_RING_FRAME;

	for (u32 i = 0; i < length; i++) {
		text[2 * i] = digit[event->frame[i] >> 4];
		text[2 * i + 1] = digit[event->frame[i] & 15];
	}
	return json_stringn(text, 2 * length);
}

static void add_packet(json_t *json, const struct observed *event)
{
	char text[SL_PREFIX_TEXT];

	json_object_set_new(json, "interface", json_string(event->interface));
	json_object_set_new(json, "dst",
			    json_string(sl_prefix_format(&event->dst, text, sizeof(text))));
	json_object_set_new(json, "length", json_integer(event->length));
	if (!event->proto)
		return;
	json_object_set_new(json, "proto", proto_to_json(event->proto));
	if (event->sport || event->dport) {
		json_object_set_new(json, "sport", json_integer(event->sport));
		json_object_set_new(json, "dport", json_integer(event->dport));
	}
}

static void add_text(json_t *json, const char *key, const char *text)
{
	/* What was cut in the middle of a character is not UTF-8. */
	json_t *value = text && text[0] ? json_string(text) : NULL;

	if (value)
		json_object_set_new(json, key, value);
}

const char *observed_value(const struct observed *event, char buf[VALUE_HASH_TEXT])
{
	return event->plain || !event->value[0]
		       ? event->value
		       : value_hash(event->value, strlen(event->value), buf);
}

json_t *observed_to_json(const struct observed *event, bool frame)
{
	json_t *json = json_pack("{s:o, s:o, s:o, s:s}", "seq", json_u64(event->seq), "at",
				 json_utc(event->utc_ns), "at_ns", json_u64(event->utc_ns), "kind",
				 observed_kind_name(event->kind));
	char text[SL_PREFIX_TEXT];

	if (event->has_source)
		json_object_set_new(
			json, "source",
			json_string(sl_prefix_format(&event->source, text, sizeof(text))));
	add_text(json, event->kind == OBSERVED_REFUSED ? "rule" : "limit", event->name);
	add_text(json, "value", event->value);
	add_text(json, "reason", event->reason);
	add_text(json, "verdict", event->verdict);
	add_text(json, "detail", event->detail);
	if (event->packets > 1)
		json_object_set_new(json, "packets", json_u64(event->packets));
	if (event->estimated)
		json_object_set_new(json, "estimated", json_true());
	if (event->is_packet)
		add_packet(json, event);
	if (event->is_packet && frame) {
		json_object_set_new(json, "link",
				    json_string(event->link == SL_LINK_IP ? "ip" : "ethernet"));
		json_object_set_new(json, "frame", frame_to_json(event));
	}
	return json;
}
