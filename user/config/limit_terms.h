/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit_terms.h - what a limit is in both tiers: its rates, how they are counted, where, and what
 * happens above them. A limit of the packet tier (policy.h) and each limit of a rule (rule.h) embed
 * it; the rows of its keys are in the table of the struct that has it, since names and defaults
 * differ, and what must fit together in it is checked once (limit_terms_check()).
 */
#ifndef SLUICE_LIMIT_TERMS_H
#define SLUICE_LIMIT_TERMS_H

#include <stdbool.h>

#include "lib/units.h"
#include "limiter/calendar.h"
#include "sluice/abi.h"

/* Rates of one limit, and prefixes of one prefix hierarchy. */
#define RATES_MAX 4
#define PREFIX_HIERARCHY_MAX 4

/* What a key may do: every one of these rates, all or none. */
struct rates {
	struct rate rate[RATES_MAX];
	u64 burst[RATES_MAX]; /* units of the rate; 0: the default */
	u8 count;	      /* 1..RATES_MAX */
};

enum throttle_kind {
	THROTTLE_HARD,
	THROTTLE_SOFT,	  /* so much more passes, counted apart */
	THROTTLE_ELASTIC, /* up to a ceiling while resources are free, else down to a floor */
};

struct throttle_def {
	enum throttle_kind kind;
	u32 soft_permille;	      /* 1..1000 */
	u64 soft_for_ns;	      /* at a stretch, and then hard for as long; 0: always */
	u32 ceiling_percent;	      /* 100..10000 */
	u32 floor_percent;	      /* 1..99: how far it may shrink; 0: not below the rate */
	u8 cpu_percent, link_percent; /* free below these, 1..100; 0: not considered */
	u8 load_signal_percent;
	/* "": no signal; one that was never set counts as not free */
	char load_signal[SL_NAME_MAX];
};

/* How addresses are grouped, finest first: `prefix` and `prefix_scale` of both tiers. */
struct prefix_hierarchy {
	u8 len[SL_FAMILY_COUNT][PREFIX_HIERARCHY_MAX];
	u32 scale[SL_FAMILY_COUNT][PREFIX_HIERARCHY_MAX]; /* of each rate: 1 and up */
	u8 count[SL_FAMILY_COUNT];	 /* 1..PREFIX_HIERARCHY_MAX; 0: not grouped (rules only) */
	u8 scale_count[SL_FAMILY_COUNT]; /* as given; 0: each is 1 */
};

/* What a limit counts. */
enum limit_count {
	COUNT_ADMITTED,
	COUNT_ALL,  /* what it refuses, too, until it is full */
	COUNT_DEBT, /* all, also above the limit: requests only */
};

struct limit_terms {
	enum sl_algo algorithm;
	u8 buckets;    /* window-counters: of each window */
	bool round_up; /* sliding-window: rounding: up; requests only */
	const struct calendar
		*calendar;  /* fixed-window: of its windows; NULL: UTC's; requests only */
	bool first_request; /* fixed-window: begins with a bucket's first use, not with UTC */
	u8 count;	    /* enum limit_count */
	bool cluster;	    /* scope: cluster: all nodes together */
	struct rates rates;
	struct throttle_def throttle;
};

#endif
