// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* host.c - see host.h. */
#include "packet/host/host.h"

#include <stdlib.h>

void packet_host_free(struct packet_host *host)
{
	bans_free(host);
	free(host->base_stats);
	free(host->local);
	host->base_stats = NULL;
	host->local = NULL;
}
