// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* state_watch.c - see state_watch.h. */
#include "daemon/state_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/file.h"
#include "control/running/rules.h"
#include "packet/host/state.h"
#include "packet/host/bans.h"
#include "lib/log.h"

static int write_live(struct daemon *d, struct sl_err *err)
{
	return rules_store(&d->running, &d->running.source, d->running.live, d->running.history_top,
			   d->running.pending.deadline_ns, d->running.pending.deadline_utc_ns, err);
}

static int write_state(struct daemon *d, struct sl_err *err)
{
	return state_store(&d->packets, err);
}

static int write_bans(struct daemon *d, struct sl_err *err)
{
	bans_store(&d->packets);
	return 0;
}

static const struct {
	const char *name;
	int (*write)(struct daemon *d, struct sl_err *err);
} files[] = {
	{ "live.json", write_live },
	{ "state.json", write_state },
	{ "bans.json", write_bans },
};

static void watch(struct daemon *d, u32 i, bool *was_there)
{
	char *path = file_join(d->running.state_dir, files[i].name);
	struct sl_err err;
	int r;

	if (!path)
		return;
	if (access(path, F_OK) == 0) {
		*was_there = true;
	} else if (errno == ENOENT && *was_there) {
		*was_there = false;
		r = file_make_dir(d->running.state_dir, 0750, &err);
		if (!r)
			r = files[i].write(d, &err);
		if (r < 0)
			log_error(
				"%s was deleted by another process and cannot be written again: %s",
				path, err.message);
		else
			log_warn("%s was deleted by another process; it was written again", path);
	}
	free(path);
}

void state_watch(struct daemon *d)
{
	static bool was_there[sizeof(files) / sizeof(files[0])];

	for (u32 i = 0; !d->packets.stopping && i < sizeof(files) / sizeof(files[0]); i++)
		watch(d, i, &was_there[i]);
}
