/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* write.h - for write.c and write_limit.c. */
#ifndef SLUICE_POLICY_WRITE_H
#define SLUICE_POLICY_WRITE_H

#include "conf/write.h"
#include "config/model.h"

/* The keys of a limit. */
void write_limit(struct writer *w, const struct limit_def *limit);

#endif
