// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_compile_events.c - sessions, ban lengths and addresses that are never banned, in an
 * image. */
#include "lib/test.h"
#include "policy_make.h"

static struct limit_def banning(const char *name, u8 v4, u8 v6)
{
	struct limit_def limit = make_limit(name);

	limit.prefix.len[SL_V4][0] = v4;
	limit.prefix.len[SL_V6][0] = v6;
	limit.ban = (struct ban_def){ 100, 10 * SEC, 60 * SEC, 3600 * SEC, 200, true, false };
	return limit;
}

/* Whether the table finds it: from its place on, without a gap. */
static bool finds(const struct sl_rules *rules, const struct sl_session *session)
{
	u32 at = sl_session_at(session->src, session->sport);

	for (u32 i = 0; i < SL_SESSION_PROBES; i++) {
		const struct sl_session *s = &rules->session[(at + i) % SL_SESSION_TABLE];

		if (!s->used)
			return false;
		if (s->src.hi == session->src.hi && s->sport == session->sport &&
		    s->used == session->used)
			return true;
	}
	return false;
}

TEST(test_sessions)
{
	struct policy policy = make_policy(NULL, 0);
	struct compile_env env = make_env();
	struct sl_session session[SL_SESSIONS_MAX + 5];
	struct sl_image *image = compile(&policy, &env);

	assert_int_equal(image->sessions, 0);
	assert_false(image->rules->dims & SL_DIMS_SESSIONS);
	image_free(image);

	/* The worst: all from one place of the table on. */
	for (u32 i = 0, port = 1; i < COUNT(session); port++) {
		session[i] = (struct sl_session){ .src.hi = 7ULL << 32, .sport = port, .used = 1 };
		i += sl_session_at(session[i].src, port) < 4;
	}
	env.session = session;
	env.session_count = 30;
	image = compile(&policy, &env);
	assert_int_equal(image->sessions, 30);
	assert_true(image->rules->dims & SL_DIMS_SESSIONS);
	for (u32 i = 0; i < COUNT(session); i++)
		assert_int_equal(finds(image->rules, &session[i]), i < 30);
	image_free(image);

	/* More than fit: the first ones, in any order of theirs. */
	for (u32 i = 0; i < COUNT(session); i++)
		session[i] = (struct sl_session){ .src.hi = (u64)(i * i) << 32,
						  .sport = 50000 - i * 77,
						  .used = 2 };
	env.session_count = COUNT(session);
	image = compile(&policy, &env);
	assert_int_equal(image->sessions, SL_SESSIONS_MAX);
	for (u32 i = 0; i < COUNT(session); i++)
		assert_int_equal(finds(image->rules, &session[i]), i < SL_SESSIONS_MAX);
	image_free(image);
}

static void assert_lens(const struct sl_rules *rules, u32 family, u8 a, u8 b, u8 c, u8 d)
{
	const u8 want[SL_BAN_LENGTHS] = { a, b, c, d };

	assert_memory_equal(rules->ban_len[family], want, sizeof(want));
}

#define NONE SL_PREFIX_NONE

/* Each once: of limits that ban, all steps of their prefix hierarchies; then those of active
 * bans. */
TEST(test_lengths)
{
	struct limit_def limit[3] = { banning("a", 32, 64), make_limit("b"), banning("c", 24, 64) };
	struct policy policy = make_policy(limit, 3);
	struct compile_env env = make_env();
	struct sl_image *image;

	limit[1].prefix.len[SL_V4][0] = 20;
	limit[2].prefix.len[SL_V6][1] = 48;
	limit[2].prefix.count[SL_V6] = 2;
	image = compile(&policy, &env);
	assert_lens(image->rules, SL_V4, 32, 24, NONE, NONE);
	assert_lens(image->rules, SL_V6, 64, 48, NONE, NONE);
	assert_true(image->rules->dims & SL_DIMS_BANS);
	image_free(image);

	env.ban_len_count[SL_V4] = 4;
	memcpy(env.ban_len[SL_V4], (u8[]){ 24, 16, 8, 4 }, 4);
	image = compile(&policy, &env);
	assert_lens(image->rules, SL_V4, 32, 24, 16, 8);
	image_free(image);

	/* A limit that drops nothing bans nobody. */
	limit[0].mode = SL_MODE_SHADOW;
	limit[2].mode = SL_MODE_OFF;
	env.ban_len_count[SL_V4] = 0;
	image = compile(&policy, &env);
	assert_false(image->rules->dims & SL_DIMS_BANS);
	image_free(image);

	/* Only the rest of limits that are gone. */
	policy.limit_count = 0;
	env.ban_len_count[SL_V4] = 1;
	image = compile(&policy, &env);
	assert_lens(image->rules, SL_V4, 24, NONE, NONE, NONE);
	assert_lens(image->rules, SL_V6, NONE, NONE, NONE, NONE);
	assert_true(image->rules->dims & SL_DIMS_BANS);
	image_free(image);

	env.ban_len_count[SL_V4] = 0;
	image = compile(&policy, &env);
	assert_false(image->rules->dims & SL_DIMS_BANS);
	image_free(image);
}

static u64 flags_of(const struct sl_image *image, u64 hi)
{
	struct sl_prefix addr = prefix(SL_V4, hi, 32);

	return image->pclass[image_pclass(image, SL_PDIM_SRC, &addr)].flags;
}

/* In the index where something bans; otherwise it costs nothing. */
TEST(test_no_ban)
{
	struct limit_def limit = make_limit("a");
	struct policy policy = make_policy(&limit, 1);
	struct compile_env env = make_env();
	const struct sl_prefix gateway = prefix(SL_V4, 0xc0000201ULL << 32, 32);
	struct sl_image *image;

	env.no_ban = &gateway;
	env.no_ban_count = 1;
	image = compile(&policy, &env);
	assert_false(image->rules->dims & SL_DIMS_P(SL_PDIM_SRC));
	assert_int_equal(flags_of(image, gateway.addr.hi), 0);
	image_free(image);

	limit = banning("a", 32, 64);
	image = compile(&policy, &env);
	assert_true(image->rules->dims & SL_DIMS_P(SL_PDIM_SRC));
	assert_int_equal(flags_of(image, gateway.addr.hi), SL_PC_NO_BAN);
	assert_int_equal(flags_of(image, gateway.addr.hi + (1ULL << 32)), 0);
	image_free(image);
}

TEST(test_asks_l4)
{
	struct limit_def limit = make_limit("a");
	struct u16_range range = { 1, 2 };
	struct sl_prefix net = prefix(SL_V4, 0xc0000200ULL << 32, 24);
	struct sl_image *image;
	static const u8 pers[] = { SL_PER_SOURCE, SL_PER_DPORT, SL_PER_PROTO, SL_PER_DST };

	for (u32 i = 0; i < COUNT(pers); i++) {
		limit.per = pers[i];
		image = compile_limits(&limit, 1);
		assert_int_equal(!!(image->rules->dims & SL_DIMS_L4), i == 1 || i == 2);
		image_free(image);
	}
	limit.match.src = &net;
	limit.match.src_count = 1;
	limit.match.length = &range;
	limit.match.length_count = 1;
	image = compile_limits(&limit, 1);
	assert_false(image->rules->dims & SL_DIMS_L4);
	image_free(image);
	limit.match.sport = &range;
	limit.match.sport_count = 1;
	image = compile_limits(&limit, 1);
	assert_true(image->rules->dims & SL_DIMS_L4);
	image_free(image);
	limit.mode = SL_MODE_OFF;
	image = compile_limits(&limit, 1);
	assert_false(image->rules->dims & SL_DIMS_L4);
	image_free(image);
}

TEST_MAIN
