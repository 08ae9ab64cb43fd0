// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The `http:` section: its meaning, defaults, errors and their places, and back to text. */
#include "lib/test.h"
#include "request/rules/request.h"
#include "config/load_def.h"
#include "config/http_def.h"
#include "lib/policy_text.h"

static const char full[] =
	"limits:\n"
	"  - {name: per-source, rate: 1000 packets/s}\n"
	"http:\n"
	"  listen: [127.0.0.1:8180, unix:/run/sluice/http.sock]\n"
	"  grpc: ['[::1]:8181']\n"
	"  spoe: [{address: 0.0.0.0:8182, clients: [192.0.2.0/24, '2001:db8::/32']}]\n"
	"  syslog: 127.0.0.1:8183\n"
	"  hosts: [limiter.example]\n"
	"  rules: /etc/sluice/rules.d\n"
	"  workers: 3\n"
	"  state: {users: 2M, log_memory: 128M, on_full: closed}\n"
	"  tls: {cert: /a/cert, key: /a/key, client_ca: /a/ca}\n"
	"  callers:\n"
	"    - {name: edge, token_file: /a/token, uid: 33, cert_cn: edge, domains: [api, web],\n"
	"       may: [check, report, push, override]}\n"
	"    - {name: logs, uid: 7, may: report}\n"
	"  never_push_down: [10.1.0.0/16]\n"
	"  push_down: {mode: shadow, max_sources: 5K, max_share: 2.5%, min_requests: 7,\n"
	"              prefix: {ipv4: 24, ipv6: 56}}\n"
	"  source_budget: {limit: per-source, user: [api/user], active: 30s, base: 200 packets/s,\n"
	"                  packets_per_request: 50, max: 20000 packets/s, max_users: 100}\n"
	"  retry_jitter: 20%\n"
	"  max_delayed: 5K\n"
	"  decision_log: {file: /var/log/sluice.json, sample: 100, values: plain}\n";

static void check_listeners(const struct http_def *http)
{
	assert_int_equal(http->listen_count, 5);
	assert_string_equal(http->listen[0].address, "127.0.0.1:8180");
	assert_int_equal(http->listen[0].kind, LISTEN_HTTP);
	assert_true(listen_is_local(&http->listen[0]));
	assert_false(http->listen[0].tls);
	assert_string_equal(http->listen[1].address, "unix:/run/sluice/http.sock");
	assert_true(listen_is_local(&http->listen[1]));
	assert_int_equal(http->listen[2].kind, LISTEN_GRPC);
	assert_true(listen_is_local(&http->listen[2]));
	assert_int_equal(http->listen[3].kind, LISTEN_SPOE);
	assert_false(listen_is_local(&http->listen[3]));
	assert_int_equal(http->listen[3].client_count, 2);
	assert_int_equal(http->listen[3].clients[1].len, 32);
	assert_int_equal(http->listen[4].kind, LISTEN_SYSLOG);
}

TEST(test_full)
{
	struct policy *policy = parse(full);
	const struct http_def *http = policy->http;

	assert_non_null(http);
	check_listeners(http);
	assert_string_equal(http->host[0], "limiter.example");
	assert_string_equal(http->rules_dir, "/etc/sluice/rules.d");
	assert_int_equal(http->workers, 3);
	assert_int_equal(http->users, 2000000);
	assert_int_equal(http->log_bytes, 128000000);
	assert_int_equal(http->on_full, FULL_CLOSED);
	assert_int_equal(http->caller_count, 2);
	assert_int_equal(http->caller[0].may, MAY_CHECK | MAY_REPORT | MAY_PUSH | MAY_OVERRIDE);
	assert_int_equal(http->caller[0].domain_count, 2);
	assert_int_equal(http->caller[1].may, MAY_REPORT);
	assert_null(http->caller[1].token_file);
	assert_true(http->caller[1].has_uid);
	assert_int_equal(http->never_push_down_count, 1);
	assert_int_equal(http->push_down.mode, PUSH_MODE_SHADOW);
	assert_int_equal(http->push_down.max_share_permille, 25);
	assert_int_equal(http->push_down.prefix[SL_V6], 56);
	assert_string_equal(http->budget.user[0], "api/user");
	assert_int_equal(http->budget.base.count, 200);
	assert_int_equal(http->budget.max_users, 100);
	assert_int_equal(http->retry_jitter_permille, 200);
	assert_int_equal(http->decision_sample, 100);
	assert_true(http->decision_values);
	assert_round_trip(policy);
}

TEST(test_defaults)
{
	struct policy *policy = parse("http: {listen: 127.0.0.1:8180, rules: /r}\n");
	const struct http_def *http = policy->http;

	assert_int_equal(http->workers, 0);
	assert_int_equal(http->users, 1000000);
	assert_int_equal(http->log_bytes, 64000000);
	assert_int_equal(http->on_full, FULL_OPEN);
	assert_int_equal(http->retry_jitter_permille, 100);
	assert_int_equal(http->max_delayed, 10000);
	assert_int_equal(http->push_down.mode, PUSH_MODE_ENFORCE);
	assert_int_equal(http->push_down.max_sources, 10000);
	assert_int_equal(http->push_down.max_share_permille, 100);
	assert_int_equal(http->push_down.min_requests, 20);
	assert_int_equal(http->push_down.prefix[SL_V4], 32);
	assert_int_equal(http->caller_count, 0);
	assert_string_equal(http->budget.limit, "");
	assert_null(http->decision_log);
	assert_round_trip(policy);
	policy = parse("table: {buckets: 1K}\n");
	assert_null(policy->http);
	assert_round_trip(policy);
}

/* Off loopback: with a certificate a listener has TLS, unless it says that it needs none. */
TEST(test_remote)
{
	struct policy *policy = parse(
		"http:\n"
		"  listen: [0.0.0.0:1, {address: '[::]:2', insecure: true, max_wait: 2s,\n"
		"    max_connections: 5K, max_connections_per_address: 7},\n"
		"           127.0.0.1:3, {address: 'unix:/s', mode: '0666', group: www-data}]\n"
		"  rules: /r\n"
		"  tls: {cert: /c, key: /k}\n"
		"  callers: [{name: a, token_file: /t, may: check}]\n");
	const struct listen_def *listen = policy->http->listen;

	assert_true(listen[0].tls);
	assert_false(listen[1].tls);
	assert_true(listen[1].has_max_wait);
	assert_int_equal(listen[1].max_wait_ns, 2 * SL_NS_PER_SEC);
	assert_int_equal(listen[1].max_connections, 5000);
	assert_int_equal(listen[1].max_connections_per_address, 7);
	assert_int_equal(listen[0].max_connections, 20000);
	assert_int_equal(listen[0].max_connections_per_address, 1000);
	assert_false(listen[2].tls);
	assert_false(listen[2].has_max_wait);
	assert_int_equal(listen[3].mode, 0666);
	assert_string_equal(listen[3].group, "www-data");
	assert_round_trip(policy);
}

#define HTTP "http:\n  rules: /r\n  "
#define CALLER "http:\n  rules: /r\n  callers: [{name: a, token_file: /t, may: check}]\n  "

TEST(test_load_signals)
{
	struct policy *policy = parse("http: {rules: /r, listen: 127.0.0.1:8180}\n"
				      "load_signals:\n"
				      "  - {name: errors, errors: 0.5%, domain: api, window: 10s}\n"
				      "  - {name: slow, latency: 250ms, quantile: 99.9%}\n");
	const struct load_signal_def *def = policy->load_signal;

	assert_int_equal(policy->load_signal_count, 2);
	assert_int_equal(def[0].errors_permille, 5);
	assert_true(def[0].window_ns == 10 * SL_NS_PER_SEC);
	assert_string_equal(def[0].domain, "api");
	assert_true(def[1].latency_ns == 250000000 && def[1].window_ns == 2 * SL_NS_PER_SEC);
	assert_int_equal(def[1].quantile_permille, 999);
	assert_ptr_equal(load_signal_def_find(policy, "slow"), &def[1]);
	assert_null(load_signal_def_find(policy, "slo"));
	assert_round_trip(policy);
}

#define SIGNAL "http: {rules: /r, listen: 127.0.0.1:1}\nload_signals:\n"

/* over 70 lines: a table of cases. */
TEST(test_errors)
{
	static const struct bad cases[] = {
		{ SIGNAL "- ^{name: a}", "load signal \"a\" has no origin; accepted: one of" },
		{ SIGNAL "- ^{name: a, errors: 1%, latency: 1s}", "has several origins" },
		{ SIGNAL "- {name: a, ^prometheus: 'http://x/', query: a, full: 8}",
		  "accepted: no such entry of load_signals, and sluicectl load-signal set NAME" },
		{ SIGNAL "- {name: a, ^json: 'http://x', path: a}", "load-signal set" },
		{ SIGNAL "- {name: a, errors: 1%, ^every: 5s}", "load-signal set" },
		{ SIGNAL "- {name: ^A, errors: 1%}", "a-z, 0-9 and -" },
		{ SIGNAL "- {name: a, errors: ^0%}", "0.1% to 100%" },
		{ SIGNAL "- {name: a, errors: 1%, ^quantile: 5%}",
		  "quantile is given without latency" },
		{ SIGNAL "- {name: a, latency: ^61s}", "1ms to" },
		{ SIGNAL "- {name: a, latency: 1s, window: ^61s}", "1s to" },
		{ SIGNAL "- {name: a, errors: 1%}\n- {name: ^a, errors: 2%}", "found \"a\" again" },
		{ "load_signals: [^{name: a, errors: 1%}]", "no request tier to report to" },
		{ "http: ^{listen: 127.0.0.1:1}", "key \"rules\" is missing" },
		{ HTTP "^lisen: []",
		  "unknown key \"lisen\" (did you mean \"listen\"?); accepted: rules, listen" },
		{ HTTP "listen: ^localhost:80", "ADDRESS:PORT" },
		{ HTTP "listen: [127.0.0.1:1, ^127.0.0.1:1]", "again" },
		{ HTTP "listen: ^unix:run", "absolute path" },
		{ HTTP "syslog: ^unix:log", "absolute path" },
		{ HTTP "listen: [{address: 'unix:/s', ^clients: 10.0.0.1}]",
		  "is for an address with a port" },
		{ HTTP "listen: [{address: '127.0.0.1:1', ^mode: '0600'}]", "mode is for" },
		{ HTTP "listen: [{address: 'unix:/s', max_connections: ^0}]", "1 to 1M" },
		{ HTTP "syslog: [{address: '127.0.0.1:1', ^max_connections: 9}]",
		  "syslog has none" },
		{ HTTP "listen: [{address: 'unix:/s', mode: ^9}]", "octal mode" },
		{ CALLER "listen: ^0.0.0.0:1", "insecure: true" },
		{ HTTP "listen: [^{address: 0.0.0.0:1, insecure: true}]", "callers" },
		{ CALLER "spoe: ^0.0.0.0:1", "clients: [CIDR]" },
		{ CALLER "listen: [^{address: 127.0.0.1:1, tls: true}]", "http.tls" },
		{ HTTP "^rules: rules.d", "again" },
		{ "http: {rules: ^rules.d}", "an absolute path" },
		{ HTTP "workers: ^0", "auto, or 1 to 256" },
		{ HTTP "state: {users: ^10}", "1K to 1G" },
		{ HTTP "state: {on_full: ^prefix}", "open, closed" },
		{ HTTP "tls: ^{cert: /c}", "key \"key\" is missing" },
		{ HTTP "callers: [^{name: a, may: check}]", "token_file, uid, cert_cn" },
		{ HTTP "callers: [^{name: a, uid: 1}]", "key \"may\" is missing" },
		{ HTTP "callers: [{name: a, uid: 1, may: ^charge}]", "check, report, push" },
		{ HTTP "callers: [{name: a, ^cert_cn: b, may: check}]", "client_ca" },
		{ HTTP "callers: [{name: a, uid: 1, may: check}, {name: ^a, uid: 2, may: check}]",
		  "again" },
		{ HTTP "never_push_down: [^10.0.0.1/8]", "found" },
		{ HTTP "push_down: {mode: ^on}", "enforce, shadow, off" },
		{ HTTP "push_down: {max_share: ^0%}", "0.1% to 100%" },
		{ HTTP "push_down: {max_sources: ^16385}", "1 to 16384" },
		{ HTTP "source_budget: ^{limit: a}", "key \"user\" is missing" },
		{ HTTP "source_budget: {limit: a, user: ^b}", "DOMAIN/RULE" },
		{ HTTP "source_budget: {limit: a, user: b/c, base: ^1 bytes/s, max: 1 packets/s}",
		  "a rate in packets" },
		{ HTTP "source_budget: {limit: a, user: b/c, base: 2 packets/s, ^max: 1 packets/s}",
		  "max is below base" },
		{ HTTP "source_budget: {limit: a, user: b/c, base: 1 packets/s, max: 1 packets/s}",
		  "there is no limit \"a\"" },
		{ HTTP "retry_jitter: ^10", "0% to 100%" },
		{ HTTP "decision_log: ^{sample: 3}", "key \"file\" is missing" },
	};

	policies_refused(cases, COUNT(cases));
}

TEST_MAIN
