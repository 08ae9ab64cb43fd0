// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Push-downs that other nodes began: in force here as far as this node's own limits allow. */
#include "lib/test.h"
#include "unit/request/mitigation/push_rig.h"

static enum push_refusal receive(struct world *w, u32 n, enum sl_push_kind kind, u64 for_ns)
{
	struct push_message message = { .group = source(n),
					.step = { kind, { 50, S, RATE_PACKETS } },
					.until_ns = w->now + for_ns,
					.node = "b",
					.rule = "api/user" };

	return push_receive(w->push, &message, w->now);
}

PUSH_TEST(test_until_its_deadline)
{
	struct sl_prefix bad = source(66), other = source(67);

	assert_int_equal(receive(&w, 66, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_string_equal(push_find(w.push, &bad)->node, "b");
	assert_null(push_find(w.push, &other));
	/* Its steps are those of the other node. */
	run(&w, 10, 15, 0);
	assert_int_equal(receive(&w, 66, SL_PUSH_DROP, 500 * S), PUSH_ALLOWED);
	assert_true(on(&w, SL_PUSH_DROP));
	assert_int_equal(w.events[PUSH_BEGAN], 1);
	/* No longer than a lease, whatever the message has. */
	run(&w, 10, 59, 0);
	assert_true(on(&w, SL_PUSH_DROP));
	run(&w, 10, 2, 0);
	assert_false(w.is_on[BAD]);
	assert_int_equal(w.events[PUSH_ENDED], 1);
}

PUSH_TEST(test_refused_push_downs)
{
	struct push_limits_def l = limits(PUSH_MODE_OFF);

	w.guard = PUSH_PROTECTED;
	assert_int_equal(receive(&w, 66, SL_PUSH_LIMIT, 20 * S), PUSH_PROTECTED);
	/* A source not seen here yet is accepted. */
	w.guard = PUSH_UNSEEN;
	assert_int_equal(receive(&w, 66, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	assert_true(on(&w, SL_PUSH_LIMIT));
	/* A well-behaved user is behind it: not dropped, and it gets as much as that user needs. */
	w.profile.good = 1;
	w.need_pps = 300;
	assert_int_equal(receive(&w, 66, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	assert_int_equal(w.on[BAD].rate.count, 300);
	assert_int_equal(receive(&w, 66, SL_PUSH_DROP, 20 * S), PUSH_USERS);
	assert_false(w.is_on[BAD]);
	w.profile.good_requests = 200;
	w.good_requests = 1000;
	assert_int_equal(receive(&w, 66, SL_PUSH_LIMIT, 20 * S), PUSH_SHARE);
	/* Ten sources at most, one of which is this node's own. */
	w.guard = PUSH_ALLOWED;
	run(&w, 5, 1, 40);
	for (u32 n = 10; n < 19; n++)
		assert_int_equal(receive(&w, n, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	assert_int_equal(receive(&w, 19, SL_PUSH_LIMIT, 20 * S), PUSH_MAX_SOURCES);
	assert_int_equal(receive(&w, 18, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	push_set_limits(w.push, &l, w.now);
	assert_int_equal(receive(&w, 10, SL_PUSH_LIMIT, 20 * S), PUSH_ALLOWED);
	assert_null(push_at(w.push, 0) && push_at(w.push, 0)->used ? w.push : NULL);
}

PUSH_TEST(test_our_own_goes_first)
{
	struct sl_prefix bad = source(66);

	run(&w, 66, 1, 40);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_int_equal(receive(&w, 66, SL_PUSH_DROP, 20 * S), PUSH_ALLOWED);
	assert_true(on(&w, SL_PUSH_LIMIT));
	push_end(w.push, &bad, true, w.now);
	assert_true(on(&w, SL_PUSH_LIMIT));
	/* Withdrawn by any node, it ends whichever node began it. */
	push_end(w.push, &bad, false, w.now);
	assert_false(w.is_on[BAD]);
	/* A push-down of another node that this node decides on as well is its own from then on. */
	assert_int_equal(receive(&w, 66, SL_PUSH_TAG, 20 * S), PUSH_ALLOWED);
	assert_true(on(&w, SL_PUSH_TAG));
	run(&w, 66, 2, 40);
	assert_true(on(&w, SL_PUSH_LIMIT));
	assert_string_equal(push_find(w.push, &bad)->node, "");
}

TEST_MAIN
