/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* explain_rig.h - a daemon with rules for explain, and its output. */
#ifndef SLUICE_TEST_EXPLAIN_RIG_H
#define SLUICE_TEST_EXPLAIN_RIG_H

#include "lib/daemon_rig.h"

/* Line 3 of the file is the first of these: rig_write() puts two before. */
static const char rules[] =
	"failsafe: [22/tcp]\n"	     /* 3 */
	"block: [198.51.100.0/24,\n" /* 4 */
	"        198.51.100.0/28]\n" /* 5 */
	"exempt: [10.0.0.0/8]\n"     /* 6 */
	"fragments: drop\n"	     /* 7 */
	"limits:\n"		     /* 8 */
	"- name: web\n"		     /* 9 */
	"  match: {src: 192.0.2.0/24, proto: tcp, dport: [443, 8000-8010]}\n"
	"  rate: 4 packets/h\n"							       /* 11 */
	"  burst: 4\n"								       /* 12 */
	"- {name: syn, match: {src: 192.0.3.0/24}, rate: 1 connections/h, burst: 1}\n" /* 13 */
	"- {name: tagged, match: {src: 192.0.4.0/24, vlan: 100-200}, rate: 1 packets/h,\n"
	"   action: tag, tag: {dscp: cs1, mark: 7}}\n"
	"- {name: ping, match: {icmp_type: echo-request, dst: 203.0.113.0/24}, mode: shadow,\n"
	"   rate: 1 packets/h}\n"
	"- {name: bytes, match: {src: 192.0.5.0/24}, rate: 1000 bytes/h,\n"
	"   algorithm: fixed-window}\n"
	"- {name: big, match: {src: 192.0.6.0/24, length: 1000-1500, sport: 53}, per: [dport],\n"
	"   rate: 1 packets/h}\n"
	"- name: own\n" /* 22 */
	"  match: {src: 192.0.9.0/24}\n"
	"  rate: [5 packets/s, 9 packets/h]\n"
	"  burst: [5, 9]\n"
	"  prefix: {ipv4: [32, 24]}\n"
	"  overrides:\n"
	"  - {src: 192.0.9.0/25, rate: [50 packets/s, 90 packets/h], burst: [50, 90]}\n" /* 28 */
	"  - {src: 192.0.9.4, rate: [3 packets/s, 4 packets/h], burst: [3, 4]}\n"	 /* 29 */
	"- name: softly\n"
	"  match: {src: 192.0.10.0/24}\n"
	"  rate: 10 packets/s\n"
	"  throttle: {soft: 10%, for: 30s}\n"
	"  ban: {after: 100 drops/10s, for: 5m, spoofable: yes}\n"
	"- {name: leased, match: {src: 192.0.11.0/24}, rate: 1000 packets/d, burst: 100000}\n";

static const char *const names = "eth0";

static int set_up(void **state)
{
	const char *reason;

	rig_open(&rig, rules);
	/* The kernel's part: an address and an interface. */
	rig.d->packets.local = calloc(2, sizeof(*rig.d->packets.local));
	assert_int_equal(sl_prefix_parse("127.0.0.1", &rig.d->packets.local[0], &reason), 0);
	assert_int_equal(sl_prefix_parse("203.0.113.10", &rig.d->packets.local[1], &reason), 0);
	rig.d->packets.local_count = 2;
	strcpy(rig.d->packets.iface[0].name, names);
	rig.d->packets.iface[0].wanted = true;
	rules_refresh(&rig.d->running);
	*state = &rig;
	return 0;
}

/* The result, to be freed; `fields` are further members, as JSON. */
static json_t *explained(struct rig *rig, const char *source, const char *fields)
{
	json_t *response, *result;
	char line[512];

	snprintf(line, sizeof(line), "explain {'source':'%s'%s}", source, fields);
	response = rig_command(rig, &rig_reader, line);
	if (!true_at(response, "ok"))
		fail_msg("%s: %s", line, json_dumps(response, 0));
	result = json_incref(json_object_get(response, "result"));
	json_decref(response);
	return result;
}

/* The change due to `matches` (NULL: to none), or NULL. */
static const json_t *change_of(const json_t *result, const char *matches)
{
	const json_t *change;
	size_t i;

	json_array_foreach(json_object_get(result, "would_change"), i, change) {
		const char *text = text_at(change, "matches");

		if (!text ? !matches : matches && !strcmp(text, matches))
			return change;
	}
	return NULL;
}

/* "change WEB" or, of a change that is due to none, "change"; else as json_at(). */
static const json_t *member(const json_t *result, const char *path)
{
	if (strncmp(path, "change", 6))
		return json_at(result, path);
	return change_of(result, path[6] ? path + 7 : NULL);
}

/* A verdict is "ACTION REASON STEP", a change "FIELD VALUE ... REASON". */
static const char *member_text(const json_t *result, const char *path, char *buf, size_t size)
{
	const json_t *json = member(result, path), *fields = json_object_get(json, "fields"),
		     *value;
	size_t used = 0;
	const char *key;

	if (!json_is_object(json))
		return json_as_text(json, buf, size);
	if (!fields)
		snprintf(buf, size, "%s %s %d", text_at(json, "action"), text_at(json, "reason"),
			 (int)int_at(json, "step"));
	json_object_foreach((json_t *)fields, key, value) {
		char number[32];

		used += snprintf(buf + used, size - used, "%s %s ", key,
				 json_as_text(value, number, sizeof(number)));
	}
	if (fields)
		snprintf(buf + used, size - used, "%s", text_at(json, "verdict.reason"));
	return buf;
}

/* Members of a result: json_expect.h. */
static void expect_in(const json_t *result, const char *of, const char *wants)
{
	json_expect_as(result, of, wants, member_text);
}

static void expect(struct rig *rig, const char *source, const char *fields, const char *wants)
{
	json_t *result = explained(rig, source, fields);

	expect_in(result, source, wants);
	json_decref(result);
}

#define EXPLAIN_TEST(test)                                                                         \
	static void test##_on(struct rig *rig);                                                    \
	TEST_WITH(test, set_up, rig_tear_down)                                                     \
	{                                                                                          \
		test##_on(&rig);                                                                   \
	}                                                                                          \
	static void test##_on(struct rig *rig)

#endif
