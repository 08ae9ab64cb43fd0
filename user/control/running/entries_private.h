/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* entries_private.h - shared by entries*.c. */
#ifndef SLUICE_RUNNING_ENTRIES_PRIVATE_H
#define SLUICE_RUNNING_ENTRIES_PRIVATE_H

#include "control/running/entry_table.h"

struct entries {
	struct entry_table table;
	bool stale;    /* the filter has bits of removed entries */
	int fd;	       /* of state_dir/entries, to append; -1: not open */
	size_t lines;  /* in it */
	bool outdated; /* its deadlines are of before the clock was set, or `unsaved` */
	bool unsaved;  /* the disk had no room: it lacks changes that are in force */
};

/* An entry of an origin is set, or removed. */
struct entry_change {
	u32 origin;
	bool remove;
	u64 from_ns;
	struct entry entry;
};

/* ---- entries_change.c */

/*
 * Makes changes and puts them in force, all or none: 0, or -errno and err. `feed`: they are of
 * feeds, and are written.
 */
int entries_change(struct running *run, const struct entry_change *change, size_t count, bool feed,
		   struct sl_err *err);
/* Removes the filter's bits of entries that are gone. */
void entries_refilter(struct running *run);

/* ---- entries_file.c */

/*
 * Reads state_dir/entries into the table and opens it. A damaged file is renamed to entries.bad and
 * logged. A last line without an end was never acknowledged.
 */
int entries_file_open(struct entries *entries, const char *state_dir, struct sl_err *err);
/* Appends changes of feeds, on disk when it returns; on failure the file is as before. */
int entries_file_append(struct entries *entries, const struct entry_change *change, size_t count,
			struct sl_err *err);
/* Writes the file again where most of its lines are history, or outdated. Errors are logged. */
void entries_file_tidy(struct entries *entries, const char *state_dir);

#endif
