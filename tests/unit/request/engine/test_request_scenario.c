// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_request_scenario.c - plays tests/scenario/requests/NAME.scn in virtual time: each node is
 * the engine with its counter table and its quota, Redis is the model of the cluster store. On
 * daemons and a real Redis: tests/cluster/scenarios.sh, which gets the steps from here:
 *
 *     test_request_scenario --steps FILE CONSISTENCY     exit 1: it is not a real one
 *     test_request_scenario FILE                         plays one
 */
#include "remote_rig.h"

#include <dirent.h>
#include <unistd.h>

#include "lib/cluster_store_memory.h"
#include "lib/request_scenario.h"

#define SCENARIOS "tests/scenario/requests"
#define POLL_NS (5 * MS) /* how often a node looks for due flushes, as the daemon */
#define DEADLINE_NS (5 * (s64)MS)
#define LATE_MAX 5 /* then the node takes Redis for unavailable, as redis_server.c */
#define TOTALS_MAX 256

struct play_node {
	struct rig_node rig; /* first */
	struct cluster_store *store;
	struct rig_caller caller;
	u32 late; /* commands in a row without a reply */
	bool cut, down;
};

struct play_count {
	u64 allowed, denied;
};

struct play {
	const char *path;
	struct request_scenario scenario;
	struct cluster_store_memory *memory;
	struct play_node node[SCENARIO_NODES];
	u64 begin_ns;  /* mono_ns of time 0 */
	u32 next_node; /* of `node any` */
	bool stopped;
	int failures;
	struct play_total {
		char descriptor[256];
		struct play_count count;
	} total[TOTALS_MAX];
};

static s64 play_time(const struct play *p)
{
	return (s64)(rig_time.mono_ns - p->begin_ns);
}

static void expect(struct play *p, const struct request_step *step, const char *what,
		   const struct scenario_range *range, u64 found)
{
	if (in_range(range, found))
		return;
	print_error("%s:%d: %s %s: %llu, expected %llu to %llu\n", p->path, step->line,
		    step->descriptor, what, found, range->least, range->most);
	p->failures++;
}

static void expect_count(struct play *p, const struct request_step *step,
			 const struct play_count *count)
{
	expect(p, step, "allowed", &step->expected, count->allowed);
	expect(p, step, "denied", &step->denied, count->denied);
}

/* ------------------------------------------------------------------ faults */

/*
 * Applies cuts and stops to a node's connection. When they end, Redis is available to it at once,
 * as after a probe.
 */
static void set_way(struct play *p, struct play_node *node)
{
	bool cut = node->cut || p->stopped;

	if (!cut)
		node->late = 0;
	node->down = node->late >= LATE_MAX;
	cluster_store_memory_cut(node->store, cut);
	cluster_store_memory_down(node->store, node->down);
}

static struct play *playing;

static void note_outcome(struct rig_node *rig, enum cluster_store_outcome outcome)
{
	struct play_node *node = (struct play_node *)rig;

	node->late = outcome == CLUSTER_STORE_DONE ? 0 : node->late + 1;
	if (node->late == LATE_MAX)
		set_way(playing, node);
}

/* Applies the faults that begin or end in (from, to]. */
static void faults(struct play *p, s64 from, s64 to)
{
	for (size_t i = 0; i < p->scenario.count; i++) {
		const struct request_step *step = &p->scenario.step[i];
		bool begins = step->at_ns > from && step->at_ns <= to;
		bool ends = step->end_ns > from && step->end_ns <= to;

		if ((step->kind == STEP_LOSE && begins) || (step->kind == STEP_KILL && ends) ||
		    (step->kind == STEP_LOSING && step->at_ns <= to && step->end_ns > from))
			cluster_store_memory_lose(p->memory);
		if (!step_is_fault(step) || step->kind == STEP_LOSE || step->kind == STEP_LOSING ||
		    (!begins && !ends))
			continue;
		if (step->kind == STEP_SLOW)
			cluster_store_memory_set_delay(p->memory, ends ? 0 : step->delay_ns / 1000);
		else if (step->kind == STEP_STOP || step->kind == STEP_KILL)
			p->stopped = !ends;
		else
			p->node[step->node].cut = !ends;
		for (u32 n = 0; n < p->scenario.nodes; n++)
			set_way(p, &p->node[n]);
	}
}

/* ------------------------------------------------------------------ time */

static void set_time(struct play *p, s64 ns)
{
	faults(p, play_time(p), ns);
	rig_time.utc_ns += p->begin_ns + ns - rig_time.mono_ns;
	rig_time.mono_ns = p->begin_ns + ns;
	cluster_store_memory_set_time(p->memory, rig_time.utc_ns / 1000);
	cluster_store_memory_run(p->memory);
}

/* In steps of POLL_NS; of long pauses in longer ones. */
static void advance(struct play *p, s64 to)
{
	u64 left = to > play_time(p) ? to - play_time(p) : 0;
	u64 step = left / 20000 > POLL_NS ? left / 20000 : POLL_NS;

	while (play_time(p) < to) {
		s64 next = play_time(p) + (s64)step;

		set_time(p, next < to ? next : to);
		for (u32 n = 0; n < p->scenario.nodes; n++)
			rig_flush(&p->node[n].rig, 5 * MS);
		cluster_store_memory_run(p->memory);
	}
}

/* ------------------------------------------------------------------ requests */

static struct play_node *node_of(struct play *p, const struct request_step *step)
{
	if (step->node != SCENARIO_ANY)
		return &p->node[step->node];
	return &p->node[p->next_node++ % p->scenario.nodes];
}

static struct play_count *total_of(struct play *p, const char *descriptor)
{
	u32 i;

	for (i = 0; p->total[i].descriptor[0] && strcmp(p->total[i].descriptor, descriptor); i++)
		assert_true(i + 1 < TOTALS_MAX);
	snprintf(p->total[i].descriptor, sizeof(p->total[i].descriptor), "%s", descriptor);
	return &p->total[i].count;
}

/* Sends it and waits for the response, in virtual time. */
static const struct response *submit(struct play *p, const struct request_step *step, bool look)
{
	struct play_node *node = node_of(p, step);
	struct rig_caller *caller = &node->caller;
	s64 sent = play_time(p);

	caller->request = rig_request(caller->descriptor, step->descriptor);
	for (u32 i = 0; i < caller->request.count; i++) {
		s64 hits = step->has_hits ? step->hits : 1;

		caller->descriptor[i].hits = hits < 0 ? -hits : hits;
		caller->descriptor[i].refund = hits < 0;
	}
	caller->request.peek = look;
	caller->request.report = step->kind == STEP_REPORT;
	caller->request.at_utc_ns = step->ago_ns ? rig_time.utc_ns - step->ago_ns : 0;
	rig_go(&node->rig, caller);
	cluster_store_memory_run(p->memory);
	for (s64 waited = MS; !caller->answered && waited <= DEADLINE_NS; waited += MS) {
		set_time(p, sent + waited);
		if (caller->answered || waited == DEADLINE_NS)
			note_outcome(&node->rig, waited < DEADLINE_NS ? CLUSTER_STORE_DONE
								      : CLUSTER_STORE_LATE);
		cluster_store_memory_run(p->memory);
	}
	assert_true(caller->answered);
	return &caller->response;
}

static void count_candidate(struct play *p, const struct response_candidate *candidate)
{
	char name[80];
	struct play_count *total;

	snprintf(name, sizeof(name), SCENARIO_CANDIDATE "%s", candidate->limit->name);
	total = total_of(p, name);
	total->allowed += !candidate->over;
	total->denied += candidate->over;
}

static void play_request(struct play *p, const struct request_step *step, struct play_count *count,
			 u64 *ret_retry_ns)
{
	const struct response *response = submit(p, step, false);
	struct play_count *total = total_of(p, step->descriptor);
	bool allowed = response->code == RESPONSE_OK,
	     denied = response->code == RESPONSE_OVER_LIMIT;

	if (!allowed)
		*ret_retry_ns = response->retry_after_ns;
	count->allowed += allowed;
	count->denied += denied;
	total->allowed += allowed;
	total->denied += denied;
	for (u32 i = 0; i < response_statuses(response); i++)
		for (u32 k = 0; k < response->status[i].candidates; k++)
			count_candidate(p, &response->status[i].candidate[k]);
}

static void play_at(struct play *p, const struct request_step *step)
{
	struct play_count count = { 0 };
	u64 retry_ns = 0;

	for (u64 i = 0; i < step->times; i++)
		play_request(p, step, &count, &retry_ns);
	expect_count(p, step, &count);
	if (step->retry_ns >= 0 &&
	    (count.allowed == step->times ||
	     retry_ns != (step->retry_ns == SCENARIO_NEVER ? ~0ULL : (u64)step->retry_ns))) {
		print_error("%s:%d: retry after %llu ns, expected %lld\n", p->path, step->line,
			    retry_ns, step->retry_ns);
		p->failures++;
	}
}

/* The first `count` steps from `step` on, which are streams, side by side. */
static void play_streams(struct play *p, const struct request_step *step, size_t count)
{
	s64 next[32];
	struct play_count found[32] = { 0 };
	u64 retry_ns;

	assert_true(count <= 32);
	for (size_t i = 0; i < count; i++)
		next[i] = step[i].at_ns;
	for (;;) {
		size_t first = count;

		for (size_t i = 0; i < count; i++)
			if (next[i] < step[i].end_ns && (first == count || next[i] < next[first]))
				first = i;
		if (first == count)
			break;
		advance(p, next[first]);
		play_request(p, &step[first], &found[first], &retry_ns);
		next[first] += step[first].every_ns;
	}
	for (size_t i = 0; i < count; i++)
		expect_count(p, &step[i], &found[i]);
}

static void play_step(struct play *p, const struct request_step *step)
{
	u64 found;

	if (step->kind == STEP_RULES) {
		rig_load(step->rules);
		return;
	}
	if (step->kind == STEP_TOTAL) {
		expect_count(p, step, total_of(p, step->descriptor));
		return;
	}
	advance(p, step->at_ns);
	if (step->kind == STEP_AT) {
		play_at(p, step);
		return;
	}
	found = submit(p, step, step->kind == STEP_LEFT)->status[0].remaining;
	if (step->kind == STEP_LEFT)
		expect(p, step, "left", &step->expected, found);
}

static void play_steps(struct play *p)
{
	const struct request_scenario *s = &p->scenario;

	faults(p, -1, 0);
	for (size_t i = 0; i < s->count; i++) {
		size_t streams = 0;

		while (i + streams < s->count && s->step[i + streams].kind == STEP_STREAM)
			streams++;
		if (streams)
			play_streams(p, &s->step[i], streams);
		else if (!step_is_fault(&s->step[i]))
			play_step(p, &s->step[i]);
		i += streams ? streams - 1 : 0;
	}
}

static void play_open(struct play *p)
{
	assert_int_equal(cluster_store_memory_new(&p->memory), 0);
	rig_time_start();
	rig_time.utc_ns = RIG_UTC;
	p->begin_ns = rig_time.mono_ns;
	playing = p;
	rig_flush_noted = note_outcome;
	cluster_store_memory_set_time(p->memory, rig_time.utc_ns / 1000);
	for (u32 n = 0; n < p->scenario.nodes; n++) {
		assert_int_equal(cluster_store_memory_node(p->memory, p->scenario.node[n],
							   &p->node[n].store),
				 0);
		rig_node_open(&p->node[n].rig, p->node[n].store);
		quotas_set_nodes(p->node[n].rig.ledger->quotas, p->scenario.nodes);
	}
	rig_domain = p->scenario.domain;
	rig_load(p->scenario.rules);
}

static void play_close(struct play *p)
{
	p->stopped = false;
	cluster_store_memory_set_delay(p->memory, 0);
	for (u32 n = 0; n < p->scenario.nodes; n++)
		p->node[n].cut = false;
	advance(p, play_time(p) + SEC);
	for (u32 n = 0; n < p->scenario.nodes; n++)
		rig_node_close(&p->node[n].rig);
	cluster_store_memory_free(p->memory);
	rig_end();
}

/* Returns whether the file varies by consistency. */
static bool play_file(const char *path, const char *consistency)
{
	struct play *p = calloc(1, sizeof(*p));
	char error[512];
	bool varies;
	int failures;

	assert_non_null(p);
	p->path = path;
	if (!request_scenario_read(path, consistency, &p->scenario, error, sizeof(error)))
		fail_msg("%s", error);
	play_open(p);
	play_steps(p);
	play_close(p);
	varies = p->scenario.varies;
	failures = p->failures;
	request_scenario_clear(&p->scenario);
	free(p);
	if (failures)
		fail_msg("%s: %d steps failed%s%s", path, failures, varies ? ", consistency: " : "",
			 varies ? consistency : "");
	return varies;
}

static void scenario(void **state)
{
	if (play_file(*state, "strict"))
		play_file(*state, "{lease: 1s}");
}

/* ------------------------------------------------------------------ the reader */

static void refused(void **state)
{
	static const char *const lines[] = { ITEMS(
		"at 1 user=bob allow 1", "at 1s user allow 1", "at 1s user=bob",
		"at 1s user=bob allow", "at 1s user=bob allow 3..1", "at 1s user=bob allow 1 more",
		"at 1s node z user=bob allow 1", "at 1s user=bob x2y allow 1",
		"at 1s report user=bob", "stream 1s 2s user=bob allow 1",
		"stream 1s 2s every 0s user=bob allow 1", "cut z 1s..2s", "cut a 2s..1s",
		"cut a 1s", "at 2s user=bob allow 1\nat 1s user=bob allow 1", "redis lose",
		"redis stop 1s", "redis break 1s", "redis kill 1s", "redis lose 2s..1s",
		"redis slow 1s..2s", "redis slow 0s 1s..2s", "at 1s user=bob deny",
		"at 1s user=bob deny 1 allow 1", "at 1s {user,plan=bob allow 1", "repeat 2 1s",
		"repeat 0 every 1s", "end", "repeat 2 every 1s\nrules",
		"repeat 2 every 1s\nat 1s user=bob allow 1\nat 3s user=bob allow 1\nend",
		"total allow 1", "nothing", "virtual real", "virtual nodes a", "real every 0s",
		"real 6s", "rules") };
	char path[] = "/tmp/sluice-scn-XXXXXX", error[512], place[64];
	struct request_scenario s;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(place, sizeof(place), "%s:4: found \"", path);
	for (size_t i = 0; i < COUNT(lines); i++) {
		FILE *out = fopen(path, "w");

		assert_non_null(out);
		fprintf(out, "domain: api\n---\n# a comment\n%s\n", lines[i]);
		fclose(out);
		if (request_scenario_read(path, "strict", &s, error, sizeof(error)))
			fail_msg("accepted: %s", lines[i]);
		/* "rules" is found at the end of its text; the second line of two is at fault. */
		if (strcmp(lines[i], "rules") && !strchr(lines[i], '\n') &&
		    strncmp(error, place, strlen(place)))
			fail_msg("%s: %s", lines[i], error);
		assert_non_null(strstr(error, "accepted: nodes, at"));
	}
	unlink(path);
}

/* ------------------------------------------------------------------ files */

static int is_scenario(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".scn");
}

int main(int argc, char **argv)
{
	struct dirent **found;
	char *path;
	int n;

	if (argc == 4 && !strcmp(argv[1], "--steps"))
		return request_scenario_print(argv[2], argv[3]);
	if (argc > 1) {
		test_add(0, (struct CMUnitTest){ argv[1], scenario, NULL, NULL, argv[1] });
		return test_run(NULL, NULL);
	}
	n = scandir(SCENARIOS, &found, is_scenario, alphasort);
	if (n <= 0) {
		fprintf(stderr, "no scenario in %s: run this from the top directory\n", SCENARIOS);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		if (asprintf(&path, "%s/%s", SCENARIOS, found[i]->d_name) < 0)
			return 1;
		test_add(i, (struct CMUnitTest){ path, scenario, NULL, NULL, path });
		free(found[i]);
	}
	free(found);
	test_add(n, (struct CMUnitTest){ "refused", refused, NULL, NULL, NULL });
	return test_run(NULL, NULL);
}
