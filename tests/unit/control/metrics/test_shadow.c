/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many sources a limit in shadow mode would have refused: in stats and metrics. */
#include "lib/daemon_rig.h"

#define SHADOW                                                                                     \
	"limits: [{name: all, rate: 10 packets/m, burst: 10, accounting: exact, mode: shadow},"    \
	" {name: other, rate: 10 packets/m, burst: 10, accounting: exact}]\n"

static long long shadow_of(struct rig *rig, const char *limit)
{
	char line[128];
	json_t *response, *sources;
	long long count;

	snprintf(line, sizeof(line), "stats {'limit':'%s'}", limit);
	response = rig_command(rig, &rig_reader, line);
	sources = json_at(response, "result.limits.0.sources");
	count = int_at(sources, "shadow");
	json_decref(response);
	return count;
}

static bool metrics_have(struct rig *rig, const char *line)
{
	struct evbuffer *out = evbuffer_new();
	bool found;

	metrics_write(&rig->d->metrics, out);
	evbuffer_add(out, "", 1);
	found = strstr((const char *)evbuffer_pullup(out, -1), line) != NULL;
	evbuffer_free(out);
	return found;
}

RIG_TEST(test_shadow_sources)
{
	u64 now = clock_mono_ns();
	int passed = 0;

	rig_open(&rig, SHADOW);
	rig_do(&rig, "limit del {'name':'other'}");
	assert_int_equal(shadow_of(&rig, "all"), 0);
	/* A hundred are over, a hundred are not. */
	for (int source = 0; source < 200; source++)
		passed += rig_passed(&rig, (u8)source, source < 100 ? 13 : 10, now);
	assert_int_equal(passed, 100 * 13 + 100 * 10);
	assert_in_range(shadow_of(&rig, "all"), 98, 102);
	assert_false(
		metrics_have(&rig, "sluice_limit_sources{limit=\"all\",state=\"shadow\"} 0\n"));
	assert_true(metrics_have(&rig, "sluice_limit_sources{limit=\"all\",state=\"shadow\"} "));
	/* Deleted and added again it has counted no source; nor has one that enforces. */
	rig_do(&rig, "limit del {'name':'all'}");
	rig_do(&rig, "limit add {'yaml':'{name: all, rate: 10 packets/m, mode: shadow}'}");
	assert_int_equal(shadow_of(&rig, "all"), 0);
	assert_true(metrics_have(&rig, "sluice_limit_sources{limit=\"all\",state=\"shadow\"} 0\n"));
	rig_do(&rig, "limit set {'name':'all','pairs':['mode=enforce']}");
	for (int source = 0; source < 10; source++)
		rig_passed(&rig, (u8)source, 30, now);
	assert_int_equal(shadow_of(&rig, "all"), 0);
	assert_false(metrics_have(&rig, "state=\"shadow\"}"));
}

TEST_MAIN
