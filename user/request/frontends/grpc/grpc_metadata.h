/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* grpc_metadata.h - `metadata` of rules, for Envoy's next filter. */
#ifndef SLUICE_HTTP_GRPC_METADATA_H
#define SLUICE_HTTP_GRPC_METADATA_H

#include "request/frontends/grpc/grpc_private.h"
#include "proto/rls.pb-c.h"

/*
 * dynamic_metadata of an answer: {"metadata": ...} of the rules whose descriptors passed, merged
 * in the order of the call: what an earlier one says stands, maps within maps are merged. So with
 * quota_mode the next filter learns which backend has quota left. NULL: there is none. Nothing
 * of the request is repeated in it. Lives as long as the stream and the rules.
 */
Rls__Struct *grpc_metadata(struct grpc_stream *stream, const struct response *response);

#endif
