// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The `cluster:` section: its meaning, defaults, errors and their places, and back to text. */
#include <unistd.h>

#include "lib/test.h"
#include "config/cluster_def.h"
#include "lib/policy_text.h"

#define MS 1000000ULL

static void assert_url(const struct redis_url *url, const char *host, u32 port, u32 database,
		       bool tls, bool unix_socket)
{
	assert_string_equal(url->host, host);
	if (!unix_socket)
		assert_int_equal(url->port, port);
	assert_int_equal(url->database, database);
	assert_int_equal(url->tls, tls);
	assert_int_equal(url->unix_socket, unix_socket);
}

TEST(test_full)
{
	struct policy *policy = parse(
		"cluster:\n"
		"  redis: {urls: ['rediss://r1.example:7000/3', 'rediss://[2001:db8::1]', 'redis://10.0.0.1/',\n"
		"                 'unix:/run/redis/a b.sock', 'unix:///run/redis.sock'],\n"
		"          mode: ring, user: sluice, password_file: /etc/sluice/redis.pass,\n"
		"          tls: {ca: /a/ca, cert: /a/cert, key: /a/key, name: redis.example},\n"
		"          prefix: 'prod/sluice:', wait: 1}\n"
		"  node: edge-1.fra\n"
		"  secret_file: /etc/sluice/cluster.key\n"
		"  sync: 250ms\n"
		"  deadline: 8ms\n");
	const struct cluster_def *cluster = policy->cluster;
	const struct redis_def *redis = &cluster->redis;

	assert_int_equal(redis->url_count, 5);
	assert_url(&redis->url[0], "r1.example", 7000, 3, true, false);
	assert_url(&redis->url[1], "2001:db8::1", 6379, 0, true, false);
	assert_url(&redis->url[2], "10.0.0.1", 6379, 0, false, false);
	assert_url(&redis->url[3], "/run/redis/a b.sock", 0, 0, false, true);
	assert_url(&redis->url[4], "/run/redis.sock", 0, 0, false, true);
	assert_int_equal(redis->mode, REDIS_MODE_RING);
	assert_string_equal(redis->user, "sluice");
	assert_string_equal(redis->password_file, "/etc/sluice/redis.pass");
	assert_string_equal(redis->ca, "/a/ca");
	assert_string_equal(redis->cert, "/a/cert");
	assert_string_equal(redis->key, "/a/key");
	assert_string_equal(redis->tls_name, "redis.example");
	assert_string_equal(redis->prefix, "prod/sluice:");
	assert_int_equal(redis->wait, 1);
	assert_string_equal(cluster->node, "edge-1.fra");
	assert_string_equal(cluster->secret_file, "/etc/sluice/cluster.key");
	assert_int_equal(cluster->sync_ns, 250 * MS);
	assert_int_equal(cluster->deadline_ns, 8 * MS);
	assert_round_trip(policy);
}

TEST(test_defaults)
{
	struct policy *policy =
		parse("cluster: {redis: {urls: redis://localhost}, secret_file: /k}\n");
	const struct redis_def *redis = &policy->cluster->redis;
	char host[64] = "", *text;

	assert_int_equal(redis->mode, REDIS_MODE_SINGLE);
	assert_url(&redis->url[0], "localhost", 6379, 0, false, false);
	assert_null(redis->user);
	assert_null(redis->password_file);
	assert_null(redis->ca);
	assert_null(redis->tls_name);
	assert_string_equal(redis->prefix, "sluice:");
	assert_int_equal(redis->wait, 0);
	assert_int_equal(policy->cluster->sync_ns, 100 * MS);
	assert_int_equal(policy->cluster->deadline_ns, 5 * MS);
	gethostname(host, sizeof(host) - 1);
	assert_int_equal(strlen(policy->cluster->node), strlen(host));
	/* the file may go to another host */
	text = written(policy);
	assert_null(strstr(text, "node:"));
	free(text);
	assert_round_trip(policy);
	policy = parse("table: {buckets: 1K}\n");
	assert_null(policy->cluster);
	assert_round_trip(policy);
}

TEST(test_tls_unused)
{
	struct policy *policy =
		parse("cluster: {redis: {urls: redis://a, tls: {ca: /c}}, secret_file: /k}\n");

	assert_true(redis_tls_unused(&policy->cluster->redis));
	assert_round_trip(policy);
	policy = parse(
		"cluster: {redis: {urls: [redis://a, rediss://b], mode: ring, tls: {ca: /c}}, "
		"secret_file: /k}\n");
	assert_false(redis_tls_unused(&policy->cluster->redis));
	assert_round_trip(policy);
	policy = parse("cluster: {redis: {urls: redis://a}, secret_file: /k}\n");
	assert_false(redis_tls_unused(&policy->cluster->redis));
	assert_round_trip(policy);
}

TEST(test_modes)
{
	struct policy *policy = parse(
		"cluster:\n"
		"  redis: {urls: [redis://a/2, 'redis://b:5000/2'], mode: sentinel, master: sluice}\n"
		"  secret_file: /k\n");

	assert_url(&policy->cluster->redis.url[0], "a", 26379, 2, false, false);
	assert_url(&policy->cluster->redis.url[1], "b", 5000, 2, false, false);
	assert_string_equal(policy->cluster->redis.master, "sluice");
	assert_round_trip(policy);
	policy = parse("cluster: {redis: {urls: [redis://a], mode: sentinel}, secret_file: /k}\n");
	assert_string_equal(policy->cluster->redis.master, "mymaster");
	assert_round_trip(policy);
	policy = parse(
		"cluster: {redis: {urls: [rediss://me@a], mode: cluster}, secret_file: /k}\n");
	assert_url(&policy->cluster->redis.url[0], "a", 6379, 0, true, false);
	assert_string_equal(policy->cluster->redis.user, "me");
	assert_round_trip(policy);
}

#define R "cluster:\n  secret_file: /k\n  redis: "
#define ONE "cluster:\n  redis: {urls: [redis://a]}\n  "

static const struct bad cases[] = {
	{ "cluster:^", "accepted: a mapping of redis, node, secret_file, sync, deadline" },
	{ "cluster: ^{secret_file: /k}", "key \"redis\" is missing" },
	{ "cluster: ^{redis: {urls: [redis://a]}}", "key \"secret_file\" is missing" },
	{ ONE "^secret: /k", "unknown key \"secret\"" },
	{ ONE "secret_file: ^k", "an absolute path" },
	{ ONE "node: ^a b", "1 to 63 characters" },
	{ ONE "node: ^''", "1 to 63 characters" },
	{ ONE "sync: ^5ms", "20ms to 10s" },
	{ ONE "sync: ^100", "found \"100\"" },
	{ ONE "deadline: ^2s", "1ms to 1s" },
	{ R "^redis://a", "a mapping of urls, mode, master" },
	{ R "^{mode: single}", "key \"urls\" is missing" },
	{ R "{urls: ^[]}", "found an empty list; accepted: redis://" },
	{ R "{urls: [^a]}", "found \"a\"; accepted: redis://HOST" },
	{ R "{urls: [^'http://a']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://:6379']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://a:0']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://a:70000']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://a:6379/x']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://a/1/2']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://a?db=1']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://2001:db8::1']}", "accepted: redis://HOST" },
	{ R "{urls: [^'redis://[2001:db8::1]x']}", "accepted: redis://HOST" },
	{ R "{urls: [^'unix:run/redis.sock']}", "an absolute path" },
	{ R "{urls: [^'redis://@a']}", "no user before it" },
	{ R "{user: b, urls: [^'redis://c@a']}", "the users \"c\" and \"b\"" },
	{ R "{urls: [redis://a, ^redis://b]}", "accepted with mode single: one" },
	{ R "{urls: ^redis://a, mode: ring}", "two or more" },
	{ R "{urls: ^redis://a/1, mode: cluster}", "found database 1" },
	{ R "{urls: [redis://a, ^rediss://b], mode: cluster}", "another scheme" },
	{ R "{urls: [redis://a/1, ^redis://b/2], mode: sentinel}", "another database" },
	{ R "{urls: ^'unix:/r', mode: sentinel}", "redis:// or rediss:// with mode sentinel" },
	{ R "{urls: redis://a, mode: ^shard}", "single, sentinel, cluster, ring" },
	{ R "{urls: redis://a, master: ^m}", "accepted with it: mode: sentinel" },
	{ R "{urls: redis://a, user: ^'a b'}", "the name of a user of Redis" },
	{ R "{urls: redis://a, ^password: x}", "unknown key \"password\"" },
	{ R "{urls: [redis://a, redis://b, ^'rediss://a:6379/0'], mode: ring}", "there already" },
	{ R "{urls: rediss://a, tls: ^{cert: /c}}", "key \"key\" is missing" },
	{ R "{urls: rediss://a, tls: {name: ^'a b'}}", "certificate is for" },
	{ R "{urls: redis://a, prefix: ^'{a}'}", "1 to 64 characters" },
	{ R "{urls: redis://a, wait: ^17}", "0 to 16" },
};

TEST(test_errors)
{
	policies_refused(cases, COUNT(cases));
}

/* Whatever else is wrong with a URL, its password is not shown. */
TEST(test_passwords)
{
	static const struct bad with[] = {
		{ R "{urls: [^'redis://:s3cret@a']}",
		  "accepted: a URL without, and redis.password_file" },
		{ R "{urls: [^'rediss://user:s3cret@a:70000/x']}", "found a password" },
		{ R "{urls: [^'redis://user:s3cret@@a']}", "found a password" },
		{ R "{urls: [^'redis://user:s3cret/@a']}", "found a password" },
		{ R "{urls: [^'redis:user:s3cret@a']}", "found something other than a Redis URL" },
	};

	for (size_t i = 0; i < COUNT(with); i++) {
		struct unmarked text = unmark(with[i].text, strlen(with[i].text));
		struct policy *policy;
		struct sl_err err = { .line = -1 };
		int rc = policy_parse("x.yaml", text.text, text.size, &policy, &err);

		assert_refused(&with[i], rc, &err);
		if (strstr(err.message, "s3cret"))
			fail_msg("%s: shown: %s", with[i].text, err.message);
	}
}

TEST_MAIN
