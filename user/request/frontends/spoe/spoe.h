/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spoe.h - the SPOE frontend: HAProxy's agent protocol. It contains SPOP's frames, does not
 * depend on other frontends, and may use request/server, request/engine and request/rules.
 */
#ifndef SLUICE_SPOE_H
#define SLUICE_SPOE_H

#include "request/server/worker.h"

extern const struct frontend frontend_spoe;

#endif
