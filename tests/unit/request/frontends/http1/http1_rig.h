/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http1_rig.h - one worker of the HTTP/1.1 frontend, without a thread. */
#ifndef TESTS_UNIT_HTTP1_RIG_H
#define TESTS_UNIT_HTTP1_RIG_H
#include <sys/socket.h>
#include <unistd.h>

#include "lib/test.h"
#include "request/frontends/http1/http1_private.h"

static struct http_tier tier;
static struct http_def def;

static int begin(void **state)
{
	static const struct engine_plan plan = { .users = 1, .threads = 1, .max_delayed = 1 };
	struct sl_err err;

	tier = (struct http_tier){ .def = &def };
	assert_int_equal(engine_open(&plan, &tier.engine, &err), 0);
	assert_int_equal(workers_make(&tier, 1, &err), 0);
	assert_int_equal(frontend_http1.start(&tier.worker[0]), 0);
	return 0;
}

static int end(void **state)
{
	frontend_http1.stop(&tier.worker[0]);
	assert_int_equal(tier.worker[0].connections, 0);
	engine_close(tier.engine);
	workers_free(&tier);
	return 0;
}

static struct http1_worker *of(void)
{
	return tier.worker[0].frontend[LISTEN_HTTP];
}

#endif
