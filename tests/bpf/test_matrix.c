// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_matrix.c - every algorithm x accounting x unit x throttle, on both data planes.
 *
 * One source sends four times its limit of 1000 packets a second, evenly, for two seconds, a
 * neighbour a tenth of it. The number that must pass follows from the rate: 2000, and the
 * algorithm's burst. Soft adds a tenth; an elastic limit here is at twice its rate.
 */
#include <stdio.h>
#include <string.h>

#include "lib/case.h"

#define SEC SL_NS_PER_SEC
#define SECONDS 2
#define RATE 1000
#define SENT (4 * RATE * SECONDS)
#define NEIGHBOUR_EVERY 40
#define FRAME_BYTES 100
#define FRAME_LARGEST 9018 /* as taken where no interface is known */
#define BURST 100
#define HEADERS 54 /* Ethernet, IPv4, TCP */

static const struct algorithm {
	const char *name;
	bool is_window; /* begins with the first packet here, and has no burst */
	u32 burst;
} algorithms[] = {
	{ "token-bucket", false, BURST },
	{ "leaky-bucket", false, 1 },
	{ "fixed-window", true, 0 },
	{ "sliding-window", true, 0 },
};

static const struct unit {
	const char *name;
	u32 per_packet;
	u32 least_burst; /* packets: one, or those that are as long as the largest frame */
} units[] = {
	{ "packets", 1, 1 },
	{ "bytes", FRAME_BYTES, FRAME_LARGEST / FRAME_BYTES + 1 },
	{ "bits", FRAME_BYTES * 8, FRAME_LARGEST / FRAME_BYTES + 1 },
	{ "connections", 1, 1 },
};

static const struct throttle {
	const char *yaml;
	u32 percent;
} throttles[] = {
	{ "hard", 100 },
	{ "{soft: 10%}", 110 },
	{ "{elastic: 200%, while: {cpu: 50%}}", 200 },
};

static const char *const accountings[] = { "exact", "percpu" };

struct combination {
	const struct algorithm *algorithm;
	const struct unit *unit;
	const struct throttle *throttle;
	const char *accounting;
};

static void put_in_force(struct target *t, const struct combination *c)
{
	struct sl_elastic *elastic = target_dp(t)->elastic;
	struct sl_elastic twice = { 0 };
	char burst[32] = "";
	u32 i;

	if (c->algorithm->burst == BURST)
		snprintf(burst, sizeof(burst), ", burst: %u", BURST * c->unit->per_packet);
	case_policy(t,
		    "limits: [{name: m, algorithm: %s, accounting: %s, throttle: %s,\n"
		    "  rate: %u %s/s%s}]\n",
		    c->algorithm->name, c->accounting, c->throttle->yaml,
		    RATE * c->unit->per_packet, c->unit->name, burst);
	if (c->throttle->percent == 200)
		twice = (struct sl_elastic){ 2 * SL_ELASTIC_ONE, 1U << 15, ~0ULL };
	for (i = 0; i < SL_LIMIT_IDS; i++)
		elastic[i] = twice;
	dp_epoch_raise(target_dp(t));
}

static u32 larger(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Packets that may pass at once, over the rate. */
static u32 at_once(const struct combination *c)
{
	u32 percent = c->throttle->percent, least = c->unit->least_burst;
	u32 packets = larger(c->algorithm->burst, least);

	if (c->algorithm->is_window)
		return 0;
	if (percent == 200 && c->algorithm->burst == BURST)
		packets *= 2;
	if (percent == 110)
		packets += larger(c->algorithm->burst / 10, least);
	return packets;
}

/* Returns 1 and prints the reason if something is wrong. */
static int check(struct target *t, const struct combination *c, u32 passed, u32 neighbours)
{
	u32 rate = RATE * SECONDS * c->throttle->percent / 100;
	u32 least = rate * 98 / 100, most = rate + rate / 100 + at_once(c);
	u64 softly = case_counted(t, "m", SL_LV_SOFT);
	u64 counted = case_counted(t, "m", SL_LV_PASS) + softly;
	bool wrong = passed < least || passed > most;

	wrong |= neighbours != SENT / NEIGHBOUR_EVERY;
	wrong |= counted != passed + neighbours;
	wrong |= case_counted(t, "m", SL_LV_DROP) != SENT - passed;
	wrong |=
		c->throttle->percent == 110 ? softly < RATE * SECONDS / 10 * 98 / 100 : softly != 0;
	if (wrong)
		print_error(
			"%s: %s %s %s %s: %u passed, %u to %u expected; %u of %u neighbours; %llu counted, %llu soft\n",
			target_name(t), c->algorithm->name, c->accounting, c->unit->name,
			c->throttle->yaml, passed, least, most, neighbours, SENT / NEIGHBOUR_EVERY,
			counted, softly);
	return wrong;
}

static int run(struct target *t, const struct combination *c)
{
	struct frame_spec spec = { .src = "192.0.2.1",
				   .proto = 6,
				   .tcp_flags = FRAME_SYN,
				   .payload = FRAME_BYTES - HEADERS };
	static struct frame sender, neighbour;
	u32 i, passed = 0, neighbours = 0;

	target_reset(t);
	put_in_force(t, c);
	case_frame(&spec, &sender);
	assert_int_equal(sender.length, FRAME_BYTES);
	spec.src = "192.0.2.2";
	case_frame(&spec, &neighbour);
	for (i = 0; i < SENT; i++) {
		target_set_time(t, (u64)i * SECONDS * SEC / SENT);
		passed += target_flood(t, 0, 0, &sender, 1);
		if (i % NEIGHBOUR_EVERY == 0)
			neighbours += target_flood(t, 0, 0, &neighbour, 1);
	}
	return check(t, c, passed, neighbours);
}

CASE_TEST(all_of_them)
{
	u32 a, b, u, k;
	int bad = 0;

	for (a = 0; a < COUNT(algorithms); a++)
		for (b = 0; b < COUNT(accountings); b++)
			for (u = 0; u < COUNT(units); u++)
				for (k = 0; k < COUNT(throttles); k++)
					bad += run(t, &(struct combination){
							      &algorithms[a], &units[u],
							      &throttles[k], accountings[b] });
	assert_int_equal(bad, 0);
	assert_int_equal(target_errors(t), 0);
}

int main(void)
{
	return case_main("matrix");
}
