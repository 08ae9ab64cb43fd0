/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* grpc_metadata.h - `metadata` of rules, for Envoy's next filter. */
#ifndef SLUICE_HTTP_GRPC_METADATA_H
#define SLUICE_HTTP_GRPC_METADATA_H

#include "request/frontends/grpc/grpc_private.h"
#include "proto/rls.pb-c.h"

/*
 * dynamic_metadata of a response: {"metadata": ...} of the rules whose descriptors passed, merged
 * in the order of the request: the first value wins, maps within maps are merged. With quota_mode
 * the next filter learns which backend has quota left. NULL: there is none. It repeats nothing of
 * the request. It lives as long as the stream and the rules.
 */
Rls__Struct *grpc_metadata(struct grpc_stream *stream, const struct response *response);

#endif
