// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ask(): decided once, observed, answered within the rules' read section. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/decide.h"
#include "http/observe.h"
#include "http/worker.h"

static struct {
	int entered, decided, observed, answered;
} did;

const struct ruleset *rules_enter(void)
{
	did.entered++;
	return NULL;
}

void rules_leave(void)
{
	did.entered--;
}

struct sl_now store_now(struct store *store)
{
	return (struct sl_now){ .mono_ns = 1, .utc_ns = 1 };
}

void decide(struct store *store, const struct ruleset *rules, const struct call *call,
	    struct sl_now now, struct answer *ret, struct decide_wait *ret_wait)
{
	assert_int_equal(did.entered, 1);
	did.decided++;
	*ret = (struct answer){ .code = CALL_OK };
	ret_wait->key = 0;
}

void observe(struct worker *worker, const struct call *call, const struct answer *answer,
	     u64 took_ns)
{
	assert_int_equal(did.entered, 1);
	did.observed++;
}

static void answered(const struct call *call, const struct answer *answer, void *arg)
{
	assert_int_equal(did.entered, 1);
	assert_ptr_equal(arg, &did);
	did.answered++;
}

static void test_at_once(void **state)
{
	struct http_tier tier = { .worker_count = 1 };
	struct worker worker = { .tier = &tier };
	struct call call = { .count = 0 };

	assert_null(ask(&worker, &call, answered, &did));
	assert_int_equal(did.decided, 1);
	assert_int_equal(did.observed, 1);
	assert_int_equal(did.answered, 1);
	assert_int_equal(did.entered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
