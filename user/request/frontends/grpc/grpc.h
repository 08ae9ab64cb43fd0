/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * grpc.h - the gRPC frontend: Envoy's rate limit service, and grpc.health.v1. It contains HTTP/2
 * and protobuf, does not depend on other frontends, and may use request/server, request/engine and
 * request/rules.
 */
#ifndef SLUICE_GRPC_H
#define SLUICE_GRPC_H

#include "request/server/worker.h"

extern const struct frontend frontend_grpc;

#endif
