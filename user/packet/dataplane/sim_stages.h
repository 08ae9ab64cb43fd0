/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_stages.h - the stages of bpf/ over sim_env.h; a tail call is a call here. */
#ifndef SLUICE_SIM_STAGES_H
#define SLUICE_SIM_STAGES_H

#include "packet/dataplane/sim_env.h"

#include "bpf/datapath.h"

static int sim_stage(env_ctx *ctx, enum sl_stage stage)
{
	return stage == SL_STAGE_ACCOUNT ? datapath_account(ctx) : datapath(ctx);
}

#endif
