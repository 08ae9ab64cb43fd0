// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* callers.c - who may do what. */
#include <string.h>

#include "http/worker.h"

u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token)
{
	if (peer->unix_socket)
		return MAY_CHECK | MAY_REPORT | MAY_PUSH;
	return peer->local ? MAY_CHECK | MAY_REPORT : 0;
}
