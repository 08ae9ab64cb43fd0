/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* load_def.h - `load_signals:`, those that the daemon measures; part of the model (policy.h). */
#ifndef SLUICE_CONFIG_LOAD_DEF_H
#define SLUICE_CONFIG_LOAD_DEF_H

#include "config/policy.h"

#define LOAD_SIGNALS_MAX 32

struct load_signal_def {
	char name[SL_NAME_MAX];
	/* What counts as full load: of errors and latency one. */
	u32 errors_permille;   /* the share of statuses of 500 and above; 0: no */
	u64 latency_ns;	       /* the quantile of the latencies; 0: no */
	u32 quantile_permille; /* default 950 */
	u64 window_ns;	       /* default 2 s */
	char *domain;	       /* NULL: all */
};

const struct load_signal_def *load_signal_def_find(const struct policy *policy, const char *name);

#endif
