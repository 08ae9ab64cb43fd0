// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The cluster store in a real redis-server, over two clients as two nodes have them, as the user
 * with the fewest rights that the documents name:
 *
 *   - random commands get the replies of cluster_store_memory.c at the server's time;
 *   - of two requests at once for the last of a limit one passes, ten thousand times;
 *   - keys end when they are needed no more;
 *   - a bucket that cannot be charged leaves the others of its command as they were.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"
#include "cluster/redis/redis.h"
#include "lib/cluster_store_memory.h"
#include "prop/cluster_store_requests.h"

#define CLIENTS 2
#define RACES 10000
#define BATCH 50
#define USER "docs/examples/redis-user.conf"

struct server {
	char dir[64], socket[96], password[96];
	pid_t pid;
	struct event_base *base;
	struct redis_url url;
	struct redis_def def;
	struct redis_def all;
	struct redis *redis[CLIENTS];
	struct redis *looker;		/* may do all: for the test's own checks */
	struct cluster_store *shared[CLIENTS];
};

static struct server server;

/* ------------------------------------------------------------------ the server */

static void write_password(void)
{
	FILE *file = fopen(server.password, "w");

	assert_non_null(file);
	fputs("CHANGE-ME\n", file);
	fclose(file);
}

/* The socket is there a moment before the server listens on it. */
static bool is_listening(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool listening;

	strcpy(address.sun_path, server.socket);
	listening = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return listening;
}

static int start_server(void **state)
{
	strcpy(server.dir, "/tmp/sluice-redis-XXXXXX");
	if (!mkdtemp(server.dir))
		return -1;
	snprintf(server.socket, sizeof(server.socket), "%s/socket", server.dir);
	snprintf(server.password, sizeof(server.password), "%s/password", server.dir);
	write_password();
	server.pid = fork();
	if (!server.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("redis-server", "redis-server", USER, "--port", "0", "--unixsocket",
		       server.socket, "--save", "", "--appendonly", "no", "--dir", server.dir,
		       "--logfile", "redis.log", NULL);
		_exit(127);
	}
	for (u32 i = 0; i < 1000 && !is_listening(); i++)
		usleep(10000);
	return is_listening() ? 0 : -1;
}

static int stop_server(void **state)
{
	char command[128];

	kill(server.pid, SIGKILL);
	waitpid(server.pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", server.dir);
	return system(command);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

/* Until it holds; a server that is stalled for seconds is waited for. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		u32 turns_ = 0;                                                                    \
		while (!(condition)) {                                                             \
			struct timeval ms_ = { .tv_usec = 1000 };                                  \
			event_base_once(server.base, -1, EV_TIMEOUT, on_tick, NULL, &ms_);         \
			event_base_loop(server.base, EVLOOP_ONCE);                                 \
			if (++turns_ > 20000000)                                                   \
				fail_msg("never: %s", #condition);                                 \
		}                                                                                  \
	} while (0)

static void open_clients(void)
{
	struct sl_err err;

	server.base = event_base_new();
	server.url = (struct redis_url){ .text = server.socket, .host = server.socket,
					 .unix_socket = true };
	server.def = (struct redis_def){ .url = &server.url, .url_count = 1, .user = "sluice",
					 .password_file = server.password, .prefix = "sluice:" };
	server.all = server.def;
	server.all.user = server.all.password_file = NULL;
	if (redis_new(server.base, &server.all, &server.looker, &err))
		fail_msg("%s", err.message);
	for (u32 i = 0; i < CLIENTS; i++) {
		if (redis_new(server.base, &server.def, &server.redis[i], &err))
			fail_msg("%s", err.message);
		assert_int_equal(cluster_store_redis_new(server.redis[i], "sluice:", i ? "b" : "a",
							 &server.shared[i]), 0);
	}
}

static void close_clients(void)
{
	for (u32 i = 0; i < CLIENTS; i++) {
		redis_free(server.redis[i]);
		server.shared[i]->ops->free(server.shared[i]);
	}
	redis_free(server.looker);
	event_base_free(server.base);
}

/* ------------------------------------------------------------------ asks */

static enum cluster_store_outcome request(u32 client, struct response *response,
				      struct cluster_store_bucket *bucket, u32 count)
{
	send_ask(server.shared[client], response, bucket, count);
	run_until(response->done);
	return response->outcome;
}

struct said {
	u32 done;
	long long integer;
};

static void on_said(void *arg, enum redis_outcome outcome, const redisReply *reply)
{
	struct said *said = arg;

	if (outcome != REPLY_OK)
		fail_msg("%s", reply && reply->str ? reply->str : "no answer");
	said->integer = reply->integer;
	said->done++;
}

static long long command(int argc, const char *const *argv)
{
	struct redis_command command = { .argc = argc, .argv = argv,
					 .deadline_ns = 20 * SL_NS_PER_SEC };
	struct said said = { 0 };

	assert_int_equal(redis_send(server.looker, &command,
				    (struct redis_handler){ .done = on_said, .arg = &said }), 0);
	run_until(said.done);
	return said.integer;
}

/* ------------------------------------------------------------------ tests */

/*
 * Redis ends keys by its time when a command begins, the script goes by TIME, some microseconds later.
 * A key that ends between the two, or at most since the command was sent, is there for Redis and not for
 * the model: then both begin again, empty.
 */
static bool ended_meanwhile(struct cluster_store_memory *memory,
			    const struct cluster_store_bucket *bucket, u32 count, u64 sent_ms)
{
	for (u32 k = 0; k < count; k++) {
		if (cluster_store_memory_ended_ms(memory, &bucket[k]) + 1 < sent_ms)
			continue;
		command(1, (const char *[]){ "FLUSHALL" });
		cluster_store_memory_lose(memory);
		return true;
	}
	return false;
}

TEST(test_model)
{
	struct cluster_store_memory *memory;
	struct cluster_store *model[CLIENTS];
	u32 passed = 0, asks = 6000;

	open_clients();
	assert_int_equal(cluster_store_memory_new(&memory), 0);
	for (u32 i = 0; i < CLIENTS; i++)
		assert_int_equal(cluster_store_memory_node(memory, i ? "b" : "a", &model[i]), 0);
	for (u32 i = 0; i < asks; i++) {
		struct cluster_store_bucket bucket[4], again[4];
		u32 count = rng_below(3) ? 1 : 1 + rng_below(4), first = rng_below(KEYS);
		u32 node = rng_below(CLIENTS);
		struct response response, other;
		struct timespec now;
		bool again_empty = false;
		u64 sent_ms;

		clock_gettime(CLOCK_REALTIME, &now);
		sent_ms = now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
		for (u32 k = 0; k < count; k++)
			bucket[k] = some_bucket(now.tv_sec * 1000000ULL, first + k * 5);
		memcpy(again, bucket, sizeof(again));
		assert_int_equal(request(node, &response, bucket, count), CLUSTER_STORE_DONE);
		cluster_store_memory_set_time(memory, response.request.now_us);
		send_ask(model[node], &other, again, count);
		cluster_store_memory_run(memory);
		assert_int_equal(other.done, 1);
		for (u32 k = 0; k < count; k++) {
			if (same(&again[k], &bucket[k]))
				continue;
			again_empty = ended_meanwhile(memory, bucket, count, sent_ms);
			if (again_empty)
				break;
			say("model ", &again[k]);
			say("script", &bucket[k]);
			fail_msg("request %u", i);
		}
		if (!again_empty)
			assert_int_equal(other.request.passed, response.request.passed);
		passed += response.request.passed;
	}
	assert_in_range(passed, asks / 20, asks * 19 / 20);
	cluster_store_memory_free(memory);
	close_clients();
}

/* A limit of two in a day; one has been charged. The neighbour has the whole limit. */
static struct cluster_store_bucket last_one(u64 key, u8 algo)
{
	return (struct cluster_store_bucket){
		.key = key, .tag = key, .cost = 1,
		.def = { .count = 2, .period_ns = 86400 * SL_NS_PER_SEC, .scale = 1,
			 .burst = algo == SL_ALGO_TOKEN_BUCKET ? 2 : 0, .ceiling_percent = 100,
			 .algo = algo },
	};
}

TEST(test_race)
{
	static const u8 algos[] = { SL_ALGO_TOKEN_BUCKET, SL_ALGO_FIXED_WINDOW, SL_ALGO_SLIDING_WINDOW,
				    SL_ALGO_SLIDING_LOG, SL_ALGO_FIRST_REQUEST };
	static struct response response[BATCH][CLIENTS];
	static struct cluster_store_bucket bucket[BATCH][CLIENTS];
	u32 passed = 0, twice = 0, none = 0;

	open_clients();
	for (u32 race = 0; race < RACES; race += BATCH) {
		for (u32 i = 0; i < BATCH; i++) {
			bucket[i][0] = last_one(1000 + race + i, algos[(race + i) % COUNT(algos)]);
			send_ask(server.shared[i % 2], &response[i][0], &bucket[i][0], 1);
		}
		for (u32 i = 0; i < BATCH; i++)
			run_until(response[i][0].done);
		/* From both at once, in one turn of the loop: which is first is open. */
		for (u32 i = 0; i < BATCH; i++) {
			assert_true(response[i][0].request.passed);
			for (u32 c = 0; c < CLIENTS; c++) {
				bucket[i][c] = last_one(1000 + race + i,
							algos[(race + i) % COUNT(algos)]);
				send_ask(server.shared[c], &response[i][c], &bucket[i][c], 1);
			}
		}
		for (u32 i = 0; i < BATCH; i++) {
			run_until(response[i][0].done && response[i][1].done);
			assert_int_equal(response[i][0].outcome, CLUSTER_STORE_DONE);
			assert_int_equal(response[i][1].outcome, CLUSTER_STORE_DONE);
			twice += response[i][0].request.passed && response[i][1].request.passed;
			none += !response[i][0].request.passed && !response[i][1].request.passed;
			passed += response[i][0].request.passed + response[i][1].request.passed;
		}
	}
	assert_int_equal(twice, 0);
	assert_int_equal(none, 0);
	assert_int_equal(passed, RACES);
	bucket[0][0] = last_one(1, SL_ALGO_FIXED_WINDOW);
	bucket[0][0].cost = 2;
	assert_int_equal(request(0, &response[0][0], bucket[0], 1), CLUSTER_STORE_DONE);
	assert_true(response[0][0].request.passed);
	close_clients();
}

static long long pttl(const char *key)
{
	return command(2, (const char *const[]){ "PTTL", key });
}

static void charge(u64 key, u8 algo, u64 cost, u64 count, u64 period_s)
{
	struct cluster_store_bucket b = {
		.key = key, .tag = 0xabc, .cost = cost,
		.def = { .count = count, .period_ns = period_s * SL_NS_PER_SEC, .scale = 1,
			 .ceiling_percent = 100, .algo = algo,
			 .burst = algo == SL_ALGO_TOKEN_BUCKET ? count : 0 },
	};
	struct response response;

	assert_int_equal(request(0, &response, &b, 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
}

#define KEY_OF(n, kind) "sluice:{0000000000000abc}" n kind

TEST(test_expiry)
{
	struct timespec now;
	long long left_ms, slack_ms = 20000;

	open_clients();
	/* 10 of 100 in an hour: six minutes. */
	charge(0x11, SL_ALGO_TOKEN_BUCKET, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000011", "b")), 360000 - slack_ms, 360001);
	clock_gettime(CLOCK_REALTIME, &now);
	left_ms = (3600 - now.tv_sec % 3600) * 1000;
	/* To the window's end and two seconds; units that count in the next one to the end of that. */
	if (left_ms > 2 * slack_ms) {
		charge(0x12, SL_ALGO_FIXED_WINDOW, 10, 100, 3600);
		assert_in_range(pttl(KEY_OF("0000000000000012", "w")), left_ms - slack_ms,
				left_ms + 2001);
		charge(0x13, SL_ALGO_SLIDING_WINDOW, 1, 100, 3600);
		assert_in_range(pttl(KEY_OF("0000000000000013", "s")), left_ms - slack_ms,
				left_ms + 2001);
		charge(0x13, SL_ALGO_SLIDING_WINDOW, 1, 100, 3600);
		assert_in_range(pttl(KEY_OF("0000000000000013", "s")), left_ms + 3600000 - slack_ms,
				left_ms + 3600001);
	}
	charge(0x14, SL_ALGO_SLIDING_LOG, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000014", "l")), 3600000 - slack_ms, 3600001);
	assert_in_range(pttl(KEY_OF("0000000000000014", "lz")), 3600000 - slack_ms, 3600001);
	charge(0x15, SL_ALGO_FIRST_REQUEST, 10, 100, 3600);
	assert_in_range(pttl(KEY_OF("0000000000000015", "f")), 3600000 - slack_ms, 3602001);
	/* A peek and a refused cost leave no key behind. */
	charge(0x16, SL_ALGO_FIXED_WINDOW, 0, 100, 3600);
	assert_int_equal(pttl(KEY_OF("0000000000000016", "w")), -2);
	close_clients();
}

TEST(test_all_or_none_on_error)
{
	struct cluster_store_bucket b[2] = { last_one(0x21, SL_ALGO_FIXED_WINDOW),
				      last_one(0x22, SL_ALGO_SLIDING_WINDOW) };
	struct response response;

	open_clients();
	b[0].tag = b[1].tag = 0xabc;
	command(3, (const char *const[]){ "SET", KEY_OF("0000000000000022", "s"), "nonsense" });
	assert_int_equal(request(0, &response, b, 2), CLUSTER_STORE_DOWN);
	assert_false(response.request.passed);
	assert_int_equal(pttl(KEY_OF("0000000000000021", "w")), -2);
	/* Garbage in a hash is an error, too. */
	command(2, (const char *const[]){ "DEL", KEY_OF("0000000000000022", "s") });
	command(4, (const char *const[]){ "HSET", KEY_OF("0000000000000022", "s"), "n", "x" });
	assert_int_equal(request(0, &response, b, 2), CLUSTER_STORE_DOWN);
	assert_int_equal(pttl(KEY_OF("0000000000000021", "w")), -2);
	/* All or none: the second has none left, and the first stays whole. */
	command(2, (const char *const[]){ "DEL", KEY_OF("0000000000000022", "s") });
	b[1].cost = 2;
	assert_int_equal(request(0, &response, &b[1], 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
	b[1].cost = 1;
	assert_int_equal(request(1, &response, b, 2), CLUSTER_STORE_DONE);
	assert_false(response.request.passed);
	assert_true(b[1].over);
	assert_false(b[0].over);
	assert_int_equal(b[0].state.used, 0);
	b[0].cost = 2;
	assert_int_equal(request(1, &response, &b[0], 1), CLUSTER_STORE_DONE);
	assert_true(response.request.passed);
	close_clients();
}

int main(void)
{
	rng_start("cluster_store_redis");
	return test_run(start_server, stop_server);
}
