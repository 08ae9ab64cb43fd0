/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * params.h - a rate and a burst -> struct sl_params, which the step functions of algo.h read.
 *
 * Pure: rates and algorithms only; no limits, rules or maps.
 */
#ifndef SLUICE_PARAMS_H
#define SLUICE_PARAMS_H

#include <stdbool.h>

#include "lib/units.h"
#include "sluice/abi.h"

/*
 * A limit's parameters (params.c): the one place where bounds of algo.h are checked.
 * -ERANGE with the bound in *ret_reason if the rate or burst cannot be represented. `burst` is 0
 * for algorithms without a burst (all but the token bucket). SL_ALGO_GRACE: rate->period_ns is the
 * duration; no other field is read.
 */
int params_compile(enum sl_algo algo, const struct rate *rate, u64 burst, u32 max_frame,
		   struct sl_params *ret, const char **ret_reason);
/*
 * A limit that elastic may multiply by up to ceiling_percent (100..10000): a sliding window's
 * counts get the quantum that takes. Call it after params_compile(), before the slot is bound.
 */
void params_make_room(struct sl_params *p, u32 ceiling_percent);
/* One that elastic may shrink to floor_percent; 0: it does not. -ERANGE with *ret_reason if it
 * cannot. */
int params_check_floor(const struct sl_params *p, u32 floor_percent, const char **ret_reason);
/*
 * Window counters: divides the window into `buckets`, as a bucket state of the packet tier holds
 * them; ceiling_percent as above. -ERANGE with the bound if it does not. Other algorithms: no
 * effect.
 */
int params_divide(struct sl_params *p, u32 buckets, u32 ceiling_percent, const char **ret_reason);

/*
 * Of a fixed window, with `first_request`: makes it one that begins with its first packet. After
 * params_compile(). 0, or -EINVAL with a reason.
 */
int params_anchor(struct sl_params *p, bool first_request, u32 ceiling_percent,
		  const char **ret_reason);
/*
 * The error of a limit by rounding, in parts per million. Sliding window: in either direction, once
 * in 16000 windows, if its counts need a quantum (at most 977, times the root of an elastic
 * ceiling). Bucket: of its rate, downwards. `check` prints it if it is not 0, and refuses more than
 * 1 % (PARAMS_ERROR_MAX_PPM).
 */
u32 params_error_ppm(const struct sl_params *p, const struct rate *rate);
#define PARAMS_ERROR_MAX_PPM 10000
/*
 * The reason why accounting percpu has no effect with an algorithm, as text for `check`; NULL if it
 * has (token bucket, fixed and sliding window). With a reason there are no leases.
 */
const char *params_percpu_note(enum sl_algo algo);
/* Fills rescale_* of `p` for bucket states made at the rates in slot->tau. */
void params_rescale(struct sl_params *p, const struct sl_limit_id_info *slot);
/* The default burst. */
u64 params_default_burst(const struct rate *rate, u32 max_frame);

#endif
