// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * snapshot.c - the rules in force, for readers that never wait.
 *
 * One pointer under RCU (liburcu, its default flavour: readers cost two stores where the kernel
 * has membarrier). Workers read between rules_enter() and rules_leave(); the main thread puts
 * another set in force and waits until nobody can have the old one any more. Nobody else waits.
 */
#include "lib/publish.h"
#include "request/server/worker.h"

static struct ruleset *in_force;

const struct ruleset *rules_enter(void)
{
	publish_read_lock();
	return publish_get(&in_force);
}

void rules_leave(void)
{
	publish_read_unlock(&in_force);
}

void snapshot_thread_begin(void)
{
	rcu_register_thread();
}

void snapshot_thread_end(void)
{
	rcu_unregister_thread();
}

void rules_publish(struct ruleset *next)
{
	ruleset_free(publish_swap(&in_force, next));
}
