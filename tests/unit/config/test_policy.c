// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The meaning of a configuration, that it is written back as it was read, and that long files
 * take time in proportion. Examples: test_policy_docs.c. Errors:
 * test_policy_errors.c. Changes: test_policy_edit.c, test_policy_sets.c.
 */
#include <time.h>

#include "lib/test.h"
#include "lib/policy_text.h"
#include "config/keys.h"

static bool rate_is(const struct rate *rate, u64 count, u64 seconds, enum rate_unit unit)
{
	return rate->count == count && rate->period_ns == seconds * SL_NS_PER_SEC &&
	       rate->unit == unit;
}

static bool prefix_is(const struct sl_prefix *prefix, const char *text)
{
	char buf[SL_PREFIX_TEXT];

	return !strcmp(sl_prefix_format(prefix, buf, sizeof(buf)), text);
}

TEST(test_defaults)
{
	struct policy *p = parse("limits: [{name: a, rate: 1 packets/s}]");
	const struct limit_def *limit = p->limit;

	assert_string_equal(p->path, "x.yaml");
	assert_int_equal(p->interface_count, 0);
	assert_int_equal(p->table_buckets, 1000000);
	assert_true(rate_is(&p->failsafe_rate, 100, 1, RATE_CONNECTIONS));
	assert_true(rate_is(&p->essential_rate, 1000, 1, RATE_PACKETS));
	assert_int_equal(p->on_parse_error, SL_ACT_PASS);
	assert_int_equal(p->fragments, SL_FRAG_LIMIT);
	assert_null(p->metrics_listen);
	assert_string_equal(p->control_socket, "/run/sluice/control.sock");
	assert_null(p->control_group);
	assert_string_equal(p->state_dir, "/var/lib/sluice");
	assert_string_equal(p->pin_dir, "/sys/fs/bpf/sluice");

	assert_int_equal(limit->per, SL_PER_SOURCE);
	assert_int_equal(limit->prefix.len[SL_V4][0], 32);
	assert_int_equal(limit->prefix.len[SL_V6][0], 64);
	assert_int_equal(limit->terms.rates.burst[0], 0);
	assert_int_equal(limit->terms.algorithm, SL_ALGO_TOKEN_BUCKET);
	assert_int_equal(limit->accounting, ACCOUNTING_PERCPU);
	assert_int_equal(limit->action, SL_ACT_DROP);
	assert_int_equal(limit->mode, SL_MODE_ENFORCE);
	assert_int_equal(limit->on_full, SL_FULL_OPEN);
	assert_int_equal(limit->pos.line, 1);
	assert_int_equal(limit->pos.column, 10);
	assert_round_trip(p);
	policy_free(NULL);
}

/* Keys without a value, as when all of a list is commented out. */
/* A path that is read from an applied text is root's: KEY_ROOT, or it is opened at start alone. */
static size_t check_paths(const struct keys *keys, u32 flags)
{
	size_t paths = 0;

	for (size_t i = 0; i < keys->count; i++) {
		const struct key *key = &keys->key[i], *item = key;
		u32 own = flags | (key->flags & (KEY_ROOT | KEY_RESTART));

		if (key->type == &type_list)
			item = key->item;
		if (item->type == &type_path && ++paths && !own)
			fail_msg("%s: neither KEY_ROOT nor KEY_RESTART", key->name);
		/* A section's KEY_RESTART is of its being there. */
		if (item->type == &type_section)
			paths += check_paths(item->keys, flags);
		else if (item->type == &type_map || item->type == &type_optional_map)
			paths += check_paths(item->keys, own);
	}
	return paths;
}

TEST(test_paths_are_roots)
{
	assert_int_equal(check_paths(&policy_keys, 0), 15);
}

TEST(test_empty)
{
	static const char *const texts[] = {
		"{}",
		"limits:\n",
		"interfaces:\nblock:\nexempt: ~\nsets: null\nfailsafe:\n",
		"limits: []\ninterfaces: []\n",
		"sets: {a: , b: []}\nblock: ['@a', '@b']",
		"\xef\xbb\xbftable: {buckets: 1}\r\n", /* a byte order mark, CRLF */
	};
	size_t i;

	for (i = 0; i < COUNT(texts); i++)
		assert_round_trip(parse(texts[i]));
}

static const char top_level[] =
	"sets: {partners: [192.0.2.0/24, '2001:db8::1']}\n"
	"interfaces:\n"
	"  - {name: eth0, on_removed: alarm}\n"
	"  - {name: eth1.100, mode: generic}\n"
	"table: {buckets: 1.5K}\n"
	"failsafe: [22/tcp, 53/udp]\n"
	"failsafe_rate: 5 connections/m\n"
	"exempt: [10.0.0.0/8, '@partners']\n"
	"block: [{prefix: 198.51.100.0/24, until: '2030-01-31T12:00:00Z', reason: 'it''s: #1'}]\n"
	"never_ban: [192.0.2.9, '@partners']\n"
	"essential: {rate: 2K packets/s}\n"
	"on_parse_error: drop\n"
	"fragments: pass\n"
	"metrics: {listen: '[::1]:9810', max_values: 200}\n"
	"control: {socket: /run/a b, group: sluice, read_group: 'null'}\n"
	"state_dir: /var/lib/s\n"
	"pin_dir: '/sys/fs/bpf/#s'\n";

TEST(test_top_level)
{
	struct policy *p = parse(top_level);
	const struct list_def *block = &p->list[LIST_BLOCK], *exempt = &p->list[LIST_EXEMPT];

	assert_int_equal(p->interface_count, 2);
	assert_string_equal(p->interface[1].name, "eth1.100");
	assert_int_equal(p->interface[0].mode, MODE_AUTO);
	assert_int_equal(p->interface[0].on_removed, ON_REMOVED_ALARM);
	assert_int_equal(p->interface[1].on_removed, ON_REMOVED_ATTACH);
	assert_int_equal(p->interface[1].mode, MODE_GENERIC);
	assert_int_equal(p->interface[1].pos.line, 4);
	assert_int_equal(p->table_buckets, 1500);
	assert_int_equal(p->failsafe_count, 2);
	assert_int_equal(p->failsafe[1].port, 53);
	assert_int_equal(p->failsafe[1].proto, 17);
	assert_true(rate_is(&p->failsafe_rate, 5, 60, RATE_CONNECTIONS));
	assert_int_equal(exempt->count, 3);
	assert_true(prefix_is(&exempt->entry[0].prefix, "10.0.0.0/8"));
	assert_true(prefix_is(&exempt->entry[2].prefix, "2001:db8::1"));
	assert_int_equal(exempt->entry[2].pos.line, 8);
	assert_int_equal(block->count, 1);
	assert_true(block->entry[0].until_utc_ns == 1896091200ULL * SL_NS_PER_SEC);
	assert_string_equal(block->entry[0].reason, "it's: #1");
	assert_true(block->entry[0].pos.line);
	assert_int_equal(p->list[LIST_NEVER_BAN].count, 3);
	assert_true(prefix_is(&p->list[LIST_NEVER_BAN].entry[0].prefix, "192.0.2.9"));
	assert_int_equal(p->on_parse_error, SL_ACT_DROP);
	assert_int_equal(p->fragments, SL_FRAG_PASS);
	assert_string_equal(p->metrics_listen, "[::1]:9810");
	assert_string_equal(p->control_socket, "/run/a b");
	assert_string_equal(p->control_read_group, "null");
	assert_string_equal(p->pin_dir, "/sys/fs/bpf/#s");
	assert_int_equal(policy_find_set(p, "partners")->count, 2);
	assert_null(policy_find_set(p, "partner"));
	assert_round_trip(p);
}

TEST(test_limit)
{
	struct policy *p = parse(
		"sets: {lab: [192.0.2.0/24]}\n"
		"limits:\n"
		"  - name: per-source\n"
		"    match: {src: ['@lab', '2001:db8::/32'], dst: 203.0.113.10,\n"
		"            proto: [tcp, 47], dport: [443, 8000-8010], sport: 53, vlan: 100,\n"
		"            tcp_flags: ['syn,!ack', 'fin, rst'], length: 0-128,\n"
		"            interface: [eth0, eth1]}\n"
		"    per: [source, dport]\n"
		"    prefix: {ipv4: [24], ipv6: 48}\n"
		"    rate: [1.5M bits/s]\n"
		"    burst: 20K\n"
		"    accounting: exact\n"
		"    action: tag\n"
		"    tag: {dscp: af21, mark: 0xDEADBEEF}\n"
		"    mode: shadow\n"
		"    on_full: closed\n"
		"    throttle: hard\n"
		"    scope: node\n"
		"  - {name: w, rate: 10 connections/1h30m, algorithm: fixed-window, per: [], mode: off,\n"
		"     scope: cluster}\n");
	const struct limit_def *l = &p->limit[0];
	const struct match_def *m = &l->match;

	assert_int_equal(m->src_count, 2);
	assert_true(prefix_is(&m->src[0], "2001:db8::/32"));
	assert_true(prefix_is(&m->src[1], "192.0.2.0/24"));
	assert_int_equal(m->sets[MATCH_SRC].prefixes, 1);
	assert_string_equal(m->sets[MATCH_SRC].name[0], "lab");
	assert_true(prefix_is(&m->dst[0], "203.0.113.10"));
	assert_int_equal(m->proto[0], 6);
	assert_int_equal(m->proto[1], 47);
	assert_int_equal(m->dport[1].first, 8000);
	assert_int_equal(m->dport[1].last, 8010);
	assert_int_equal(m->sport[0].last, 53);
	assert_int_equal(m->vlan[0].first, 100);
	assert_int_equal(m->tcp_flags[0].set, 2);
	assert_int_equal(m->tcp_flags[0].clear, 16);
	assert_int_equal(m->tcp_flags[1].set, 5);
	assert_int_equal(m->length[0].last, 128);
	assert_string_equal(m->interface[1], "eth1");
	assert_int_equal(l->per, SL_PER_SOURCE | SL_PER_DPORT);
	assert_int_equal(l->prefix.len[SL_V4][0], 24);
	assert_int_equal(l->prefix.len[SL_V6][0], 48);
	assert_true(rate_is(&l->terms.rates.rate[0], 1500000, 1, RATE_BITS));
	assert_int_equal(l->terms.rates.burst[0], 20000);
	assert_int_equal(l->accounting, ACCOUNTING_EXACT);
	assert_int_equal(l->action, SL_ACT_TAG);
	assert_true(l->has_dscp && l->has_mark);
	assert_int_equal(l->dscp, 18);
	assert_true(l->mark == 0xdeadbeef);
	assert_int_equal(l->mode, SL_MODE_SHADOW);
	assert_int_equal(l->on_full, SL_FULL_CLOSED);
	assert_false(l->terms.cluster);
	assert_true(p->limit[1].terms.cluster);
	assert_int_equal(p->limit[1].per, 0);
	assert_int_equal(p->limit[1].mode, SL_MODE_OFF);
	assert_int_equal(p->limit[1].terms.algorithm, SL_ALGO_FIXED_WINDOW);
	assert_true(rate_is(&p->limit[1].terms.rates.rate[0], 10, 5400, RATE_CONNECTIONS));
	assert_ptr_equal(policy_find_limit(p, "w"), &p->limit[1]);
	assert_round_trip(p);
}

TEST(test_rates_and_prefix_hierarchies)
{
	struct policy *p = parse(
		"limits:\n"
		"  - name: both\n"
		"    rate: [10 packets/s, 500 packets/h]\n"
		"    burst: [20, 1K]\n"
		"    prefix: {ipv4: [32, 24], ipv6: [64, 56, 48]}\n"
		"    prefix_scale: {ipv4: [1, 16], ipv6: [1, 4, 65536]}\n"
		"    on_full: prefix\n"
		"  - {name: part, rate: [5 bits/s], burst: [1M], prefix: {ipv6: [128, 0]},\n"
		"     prefix_scale: {ipv4: 3}}\n"
		"  - {name: windows, rate: [5 packets/m, 9K bytes/h, 7 connections/d, 1G packets/m],\n"
		"     algorithm: fixed-window}\n");
	const struct limit_def *l = &p->limit[0];

	assert_int_equal(l->terms.rates.count, 2);
	assert_true(rate_is(&l->terms.rates.rate[1], 500, 3600, RATE_PACKETS));
	assert_int_equal(l->terms.rates.burst[0], 20);
	assert_int_equal(l->terms.rates.burst[1], 1000);
	assert_int_equal(l->prefix.count[SL_V4], 2);
	assert_int_equal(l->prefix.count[SL_V6], 3);
	assert_int_equal(l->prefix.len[SL_V4][1], 24);
	assert_int_equal(l->prefix.len[SL_V6][2], 48);
	assert_int_equal(l->prefix.scale[SL_V4][1], 16);
	assert_int_equal(l->prefix.scale[SL_V6][2], 65536);
	assert_int_equal(l->on_full, SL_FULL_PREFIX);

	l = &p->limit[1];
	assert_int_equal(l->terms.rates.count, 1);
	assert_int_equal(l->prefix.count[SL_V4], 1);
	assert_int_equal(l->prefix.scale[SL_V4][0], 3);
	assert_int_equal(l->prefix.len[SL_V6][1], 0);
	assert_int_equal(l->prefix.scale[SL_V6][1], 1);
	assert_int_equal(p->limit[2].terms.rates.count, 4);
	assert_true(rate_is(&p->limit[2].terms.rates.rate[2], 7, 86400, RATE_CONNECTIONS));
	assert_round_trip(p);
}

TEST(test_bans)
{
	struct policy *p = parse(
		"limits:\n"
		"  - {name: a, rate: 5 packets/s, match: {tcp_flags: ['ack', 'ack,!syn']},\n"
		"     ban: {after: 1000 drops/10s, for: 5m}}\n"
		"  - {name: b, rate: 5 packets/s, prefix: {ipv6: [64, 48]}, algorithm: sliding-window,\n"
		"     ban: {after: 1 drop/s, for: 2d, factor: 1.25, spoofable: yes}}\n"
		"  - {name: c, rate: 5 packets/s, algorithm: leaky-bucket, mode: off,\n"
		"     ban: {after: 1K drops/m, for: 1h, max: 1h, factor: 1, spoofable: true}}\n");
	const struct ban_def *ban = &p->limit[0].ban;

	assert_int_equal(ban->after, 1000);
	assert_int_equal(ban->within_ns, 10 * SL_NS_PER_SEC);
	assert_int_equal(ban->for_ns, 300 * SL_NS_PER_SEC);
	assert_int_equal(ban->factor_percent, 200);
	assert_int_equal(ban->max_ns, 86400 * SL_NS_PER_SEC);
	assert_false(ban->spoofable);
	ban = &p->limit[1].ban;
	assert_int_equal(ban->factor_percent, 125);
	assert_int_equal(ban->max_ns, 2 * 86400 * SL_NS_PER_SEC);
	assert_true(ban->spoofable);
	ban = &p->limit[2].ban;
	assert_int_equal(ban->factor_percent, 100);
	assert_int_equal(ban->max_ns, 3600 * SL_NS_PER_SEC);
	assert_int_equal(p->limit[2].terms.algorithm, SL_ALGO_LEAKY_BUCKET);
	assert_int_equal(p->limit[1].terms.algorithm, SL_ALGO_SLIDING_WINDOW);
	assert_round_trip(p);
}

TEST(test_throttles)
{
	struct policy *p = parse(
		"limits:\n"
		"  - {name: hard, rate: 5 packets/s, throttle: hard}\n"
		"  - {name: soft, rate: 5 packets/s, throttle: {soft: 10%, for: 1h30m}}\n"
		"  - {name: least, rate: 5 packets/s, throttle: {soft: 0.1%}, mode: off}\n"
		"  - {name: most, rate: 5 packets/s, throttle: {soft: 100%}, action: tag, tag: {mark: 1}}\n"
		"  - {name: all, rate: 5 packets/s,\n"
		"     throttle: {elastic: 200%, floor: 5%, while: {cpu: 70%, link: 80%, load_signal: api-load}}}\n"
		"  - {name: one, rate: 5 packets/s, throttle: {elastic: 10000%, while: {load_signal: {'null': 1%}}}}\n");
	const struct throttle_def *t = &p->limit[1].terms.throttle;

	assert_int_equal(p->limit[0].terms.throttle.kind, THROTTLE_HARD);
	assert_int_equal(t->kind, THROTTLE_SOFT);
	assert_int_equal(t->soft_permille, 100);
	assert_int_equal(t->soft_for_ns, 5400 * SL_NS_PER_SEC);
	assert_int_equal(p->limit[2].terms.throttle.soft_for_ns, 0);
	assert_int_equal(p->limit[2].terms.throttle.soft_permille, 1);
	assert_int_equal(p->limit[3].terms.throttle.soft_permille, 1000);
	t = &p->limit[4].terms.throttle;
	assert_int_equal(t->kind, THROTTLE_ELASTIC);
	assert_int_equal(t->ceiling_percent, 200);
	assert_int_equal(t->cpu_percent, 70);
	assert_int_equal(t->link_percent, 80);
	assert_string_equal(t->load_signal, "api-load");
	assert_int_equal(t->load_signal_percent, 80);
	t = &p->limit[5].terms.throttle;
	assert_int_equal(t->ceiling_percent, 10000);
	assert_int_equal(t->cpu_percent, 0);
	assert_int_equal(t->load_signal_percent, 1);
	assert_round_trip(p);
}

/* A name stands for the type in each family that has it; a number for both. */
TEST(test_icmp_types)
{
	struct policy *p = parse("limits: [{name: a, rate: 1 packets/s, match: {icmp_type: "
				 "[echo-request, redirect, packet-too-big, 3, 0, 200]}}]");
	static const struct icmp_type_cond want[] = {
		{ SL_V4, 8 }, { SL_V6, 128 }, { SL_V4, 5 }, { SL_V6, 2 },   { SL_V4, 3 },
		{ SL_V6, 3 }, { SL_V4, 0 },   { SL_V6, 0 }, { SL_V4, 200 }, { SL_V6, 200 },
	};

	assert_int_equal(p->limit[0].match.icmp_type_count, COUNT(want));
	assert_memory_equal(p->limit[0].match.icmp_type, want, sizeof(want));
	assert_round_trip(p);
}

/* ---- long files ---- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* CPU seconds that `lines` lines take; `format` has the line's number in it. */
static double time_lines(const char *first, const char *format, int lines, bool good)
{
	struct policy *policy = NULL;
	struct sl_err err = { .line = 0 };
	char *text = NULL;
	double begin, end;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int i, rc;

	fputs(first, out);
	for (i = 0; i < lines; i++)
		fprintf(out, format, i / 65536, i / 256 % 256, i % 256);
	fclose(out);
	begin = seconds();
	rc = policy_parse("x.yaml", text, size, &policy, &err);
	end = seconds();
	if (!rc != good)
		fail_msg("%s", err.message);
	assert_int_equal(!!err.line, !good); /* an error has its place */
	policy_free(policy);
	free(text);
	return end - begin;
}

TEST(test_long_files)
{
	static const struct {
		const char *first, *format;
		bool good;
	} files[] = {
		{ "block:\n", "  - 10.%d.%d.%d\n", true },
		{ "limits:\n - name: a\n   rate: 1 packets/s\n   match:\n     src:\n",
		  "     - 10.%d.%d.%d\n", true },
		{ "sets:\n", "  s-%d-%d-%d: [1.2.3.4]\n", true },
		{ "", "# comment %d %d %d\n", false },
		{ "", "garbage %d.%d: %d\n", false },
		{ "", "garbage %d %d %d\n", false },
		{ "limits:\n", "  - {name: a-%d-%d-%d, rate: 1 packets/s}\n", false },
		{ "limits:\n", "  - [%d, {a: %d, b: [%d]}]\n", false },
		{ "table: {", "k%d-%d-%d: [,\n", false },
		{ "", "- - [{ %d %d %d\n", false },
		{ "a: '", "%d %d %d\n", false },
		{ "", "? %d %d %d\n", false },
	};
	size_t i;

	for (i = 0; i < COUNT(files); i++) {
		double tenth = time_lines(files[i].first, files[i].format, 10000, files[i].good);
		double whole = time_lines(files[i].first, files[i].format, 100000, files[i].good);

		/* linear is 10; quadratic 100. Below 50 ms the clock is too coarse. */
		if (whole > 5.0 || (whole > 0.05 && whole > tenth * 40))
			fail_msg("%s: 10000 lines %.3f s, 100000 lines %.3f s", files[i].format,
				 tenth, whole);
	}
}

TEST_MAIN
