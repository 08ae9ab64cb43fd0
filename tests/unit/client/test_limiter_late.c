// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How late each acquisition of libsluice is, in virtual time. One thread runs at a time, and time
 * passes only while all of them sleep. Each wake-up, at a time or by a signal, comes late by any
 * time up to LATE, as on a loaded machine. So what is measured is the library's own part, and the
 * bound is exact: units are taken when an exact model of the bucket has them and those that came
 * before have theirs or gave up, never earlier, and at most one wake-up later: the late ones do not
 * add up. With wake-ups in time: at that nanosecond.
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static int virtual_clock(clockid_t clock, struct timespec *ret);
static int virtual_wait(sem_t *sem, clockid_t clock, const struct timespec *at);
static int virtual_post(sem_t *sem);

#define clock_gettime virtual_clock
#define sem_clockwait virtual_wait
#define sem_post virtual_post
#include "client/limiter.c"
#undef clock_gettime
#undef sem_clockwait
#undef sem_post

#include "lib/rng.h"
#include "lib/test.h"

/* From any thread. */
#define broken(...) (fprintf(stderr, "# " __VA_ARGS__), fputc('\n', stderr), abort())

#define SEC SL_NS_PER_SEC
#define MS (SEC / 1000)
#define THREADS 64
#define CALLS 120 /* of each thread */
#define UTC_NS (1790000000 * SEC)

struct actor {
	pthread_t id;
	pthread_cond_t turn;
	sem_t *asleep; /* what it sleeps on; NULL: none, or only the time */
	u64 wake_ns;   /* when it runs again; ~0: by a signal */
	bool ended;
	u32 call; /* its last one */
};

/* `stage` is locked by the one that runs. */
static pthread_mutex_t stage = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static struct actor actor[THREADS];
static struct actor *running;
static _Thread_local struct actor *self;
static u64 now_ns, late_ns;

/* Calls of the limiter in the order in which they came. */
static struct call {
	u64 came_ns, units;
	u64 ended_ns; /* when it was due, or gave up: then the next one is first */
} call[THREADS * CALLS];
static u32 calls, ended;
static u64 latest_ns, most_late_ns, in_time, gave_up;

static u64 some_late(void)
{
	return late_ns ? rng_below(late_ns + 1) : 0;
}

/* ---------------------------------------------------------------- time, and who runs */

static int virtual_clock(clockid_t clock, struct timespec *ret)
{
	u64 ns = now_ns + (clock == CLOCK_REALTIME ? UTC_NS : 0);

	*ret = (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
	return 0;
}

static void sleep_on(sem_t *sem, u64 wake_ns)
{
	self->asleep = sem;
	self->wake_ns = wake_ns;
	running = NULL;
	pthread_cond_signal(&idle);
	while (running != self)
		pthread_cond_wait(&self->turn, &stage);
}

static int virtual_wait(sem_t *sem, clockid_t clock, const struct timespec *at)
{
	u64 at_ns = (u64)at->tv_sec * SEC + at->tv_nsec;

	sleep_on(sem, at_ns == ~0ULL ? at_ns : (at_ns > now_ns ? at_ns : now_ns) + some_late());
	return 0;
}

/* The next one that wakes up, at its time; false: all have ended. */
static bool next_turn(void)
{
	struct actor *next = NULL;

	for (u32 i = 0; i < THREADS; i++)
		if (!actor[i].ended && (!next || actor[i].wake_ns < next->wake_ns))
			next = &actor[i];
	if (!next)
		return false;
	if (next->wake_ns == ~0ULL)
		broken("all sleep, and nobody will be woken");
	now_ns = next->wake_ns > now_ns ? next->wake_ns : now_ns;
	next->asleep = NULL;
	running = next;
	pthread_cond_signal(&next->turn);
	while (running)
		pthread_cond_wait(&idle, &stage);
	return true;
}

/* ---------------------------------------------------------------- what is due */

/* Of the bucket; times the rate, so that all is whole. Of a window its number and count. */
static struct {
	bool window;
	u64 rate, burst, period_ns;
	unsigned __int128 full;
	u64 number, count;
} model;

static u64 model_due(u64 units)
{
	unsigned __int128 at = model.full + (unsigned __int128)units * SEC,
			  room = (unsigned __int128)model.burst * SEC;

	if (model.window)
		return model.count + units > model.burst
			       ? (model.number + 1) * model.period_ns - UTC_NS
			       : 0;
	return at > room ? (u64)((at - room + model.rate - 1) / model.rate) : 0;
}

static void model_take(u64 at_ns, u64 units)
{
	unsigned __int128 at = (unsigned __int128)at_ns * model.rate;
	u64 number = (at_ns + UTC_NS) / (model.window ? model.period_ns : SEC);

	if (model.window && number != model.number)
		model.count = 0;
	model.number = number;
	model.count += units;
	model.full = (at > model.full ? at : model.full) + (unsigned __int128)units * SEC;
}

/* A call got its units now. */
static void note_served(u32 n)
{
	u64 due_ns = model_due(call[n].units), late;

	if (n < ended)
		broken("call %u was served after one that came later", n);
	for (; ended < n; ended++) {
		/* This thread gives up, and serves those behind it. */
		if (!call[ended].ended_ns && ended == self->call)
			call[ended].ended_ns = now_ns;
		if (!call[ended].ended_ns)
			broken("call %u was served before call %u", n, ended);
		latest_ns = call[ended].ended_ns > latest_ns ? call[ended].ended_ns : latest_ns;
	}
	if (due_ns < call[n].came_ns)
		due_ns = call[n].came_ns;
	if (due_ns < latest_ns)
		due_ns = latest_ns;
	if (now_ns < due_ns || now_ns - due_ns > late_ns)
		broken("call %u, %llu units: at %llu, due at %llu", n, call[n].units, now_ns,
		       due_ns);
	late = now_ns - due_ns;
	most_late_ns = late > most_late_ns ? late : most_late_ns;
	in_time += !late;
	model_take(now_ns, call[n].units);
	call[n].ended_ns = due_ns;
}

/* A thread that sleeps on this, or the one that runs: it serves itself. */
static struct actor *owner_of(sem_t *sem)
{
	for (u32 i = 0; i < THREADS; i++)
		if (actor[i].asleep == sem)
			return &actor[i];
	return self;
}

static int virtual_post(sem_t *sem)
{
	struct waiter *w = (struct waiter *)((char *)sem - offsetof(struct waiter, wake));
	struct actor *owner = owner_of(sem);
	u64 wake_ns;

	if (w->served)
		note_served(owner->call);
	if (owner == self)
		return 0;
	wake_ns = now_ns + some_late();
	owner->wake_ns = wake_ns < owner->wake_ns ? wake_ns : owner->wake_ns;
	return 0;
}

/* ---------------------------------------------------------------- threads */

static struct sluice_limiter *limiter;
static u64 units_most, pause_ns;

static void one_call(void)
{
	u64 deadline_ns = rng_below(4) ? UINT64_MAX : now_ns + rng_below(2 * pause_ns);
	u32 n = self->call = calls++;
	int rc;

	call[n] = (struct call){ .came_ns = now_ns, .units = 1 + rng_below(units_most) };
	rc = sluice_wait(limiter, call[n].units, deadline_ns);
	if (rc) {
		gave_up++;
		call[n].ended_ns = call[n].ended_ns ? call[n].ended_ns : now_ns;
		if (rc != -ETIMEDOUT || now_ns > deadline_ns + late_ns)
			broken("call %u gave up: %d, at %llu, deadline %llu", n, rc, now_ns,
			       deadline_ns);
	} else if (!call[n].ended_ns) {
		note_served(n);
	}
}

static void *run(void *arg)
{
	self = arg;
	pthread_mutex_lock(&stage);
	while (running != self)
		pthread_cond_wait(&self->turn, &stage);
	for (u32 i = 0; i < CALLS; i++) {
		one_call();
		sleep_on(NULL, now_ns + rng_below(2 * pause_ns));
	}
	self->ended = true;
	running = NULL;
	pthread_cond_signal(&idle);
	pthread_mutex_unlock(&stage);
	return NULL;
}

/* The threads want `demand_percent` of the rate. */
static void play(enum sluice_algorithm algorithm, u64 rate, u64 burst, u64 late, u64 most,
		 u64 demand_percent)
{
	struct sluice_config config = {
		.size = sizeof(config),
		.algorithm = algorithm,
		.units = rate,
		.interval_ns = SEC,
		.burst = algorithm == SLUICE_TOKEN_BUCKET ? burst : 0,
	};
	char why[200];

	memset(&model, 0, sizeof(model));
	model.window = algorithm == SLUICE_FIXED_WINDOW;
	model.rate = rate;
	model.burst = burst;
	model.period_ns = SEC;
	now_ns = 1000 * SEC + rng_below(SEC);
	late_ns = late;
	units_most = most;
	pause_ns = THREADS * (1 + most) / 2 * SEC / rate * 100 / demand_percent;
	calls = ended = 0;
	latest_ns = most_late_ns = in_time = gave_up = 0;
	assert_int_equal(sluice_limiter_new(&config, &limiter, why, sizeof(why)), 0);
	pthread_mutex_lock(&stage);
	for (u32 i = 0; i < THREADS; i++) {
		actor[i] = (struct actor){ .wake_ns = now_ns + rng_below(pause_ns) };
		pthread_cond_init(&actor[i].turn, NULL);
		pthread_create(&actor[i].id, NULL, run, &actor[i]);
	}
	while (next_turn())
		;
	pthread_mutex_unlock(&stage);
	for (u32 i = 0; i < THREADS; i++)
		pthread_join(actor[i].id, NULL);
	fprintf(stderr,
		"# algorithm %d, %llu/s: %u calls, %llu gave up; late by at most %llu ns of %llu, %llu in time\n",
		algorithm, rate, calls, gave_up, most_late_ns, late_ns, in_time);
	assert_int_equal(calls, THREADS * CALLS);
	assert_int_equal(sluice_waiting(limiter), 0);
	assert_true(gave_up > 0 && gave_up < calls / 2);
	/* The bound is reached, or nearly. */
	assert_true(most_late_ns >= late / 2);
	sluice_limiter_free(limiter);
}

TEST(test_late)
{
	rng_start("limiter_late");
	for (u64 late = 0; late <= 20 * MS; late += 20 * MS) {
		play(SLUICE_TOKEN_BUCKET, 1000, 10, late, 1, 150);
		play(SLUICE_TOKEN_BUCKET, 100, 20, late, 5, 110);
		play(SLUICE_TOKEN_BUCKET, 50, 5, late, 3, 90);
		play(SLUICE_LEAKY_BUCKET, 500, 1, late, 1, 120);
		play(SLUICE_FIXED_WINDOW, 40, 40, late, 3, 120);
	}
}

TEST_MAIN
