/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * observe.h - what every decision is also told to: counters, the decision log, and the
 * aggregation of users behind sources, which pushes verdicts down to the packet tier.
 *
 * observe() runs on the worker's thread right after a decision, within its RCU section, and
 * costs tens of nanoseconds: counters are the worker's own; what the main thread has to hear
 * goes through a bounded ring of the worker's that it drains, and is counted where it is full.
 */
#ifndef SLUICE_HTTP_OBSERVE_H
#define SLUICE_HTTP_OBSERVE_H

#include "http/call.h"

struct worker;

void observe(struct worker *worker, const struct call *call, const struct answer *answer,
	     u64 took_ns);

/* aggregate.c: users and sources. Called by observe() where the call has a source. */
struct aggregate;
void aggregate_note(struct aggregate *aggregate, u32 worker_index, const struct call *call,
		    const struct answer *answer);

#endif
