// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* daemon.c - see daemon.h. */
#include "daemon/daemon.h"

void daemon_wire(struct daemon *d)
{
	d->running.packets = &d->packets;
	d->nodes.running = &d->running;
	d->scales.running = &d->running;
	d->commands.running = &d->running;
	d->commands.nodes = &d->nodes;
	d->commands.scales = &d->scales;
	d->metrics.running = &d->running;
	d->metrics.nodes = &d->nodes;
	d->metrics.scales = &d->scales;
}
