/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peaks.h - quantiles of the rates of many subjects (sources, prefixes, users), in bounded memory.
 *
 * A uniform sample of the subjects, by hash (Gibbons' distinct sampling, 2001): those whose hash is
 * below a threshold, which halves whenever there is no more room. A subject in the sample was in it
 * from its first packet on, so its own counts are exact. Up to PEAKS_ROOM subjects all are in it,
 * and every number is exact. Of more, the sample has n >= PEAKS_ROOM / 2 of them, and the share of
 * subjects above any rate is wrong by less than
 *
 *     sqrt(ln(2 / 0.05) / (2 n))		with 95 %: Dvoretzky, Kiefer, Wolfowitz; Massart
 * 1990
 *
 * that is 0.8 % for n = 32768. The true largest rate may be of one that is not in the sample.
 */
#ifndef SLUICE_REPLAY_PEAKS_H
#define SLUICE_REPLAY_PEAKS_H

#include <stdbool.h>

#include "lib/addr.h"
#include "sluice/key.h"

#define PEAKS_ROOM 65536

struct peaks_entry {
	u64 hash;      /* 0: free */
	u64 period;    /* the number of the newest one */
	u64 in_period; /* counted in it */
	u64 peak;      /* in the fullest period so far */
	/* The caller's, 0 at first: */
	struct sl_prefix subject;
	u64 weight;
	bool apart; /* not of peaks_quantiles() without those apart */
};

struct peaks {
	struct peaks_entry *entry; /* 2 * PEAKS_ROOM, open addressing */
	u32 count;
	u32 halvings; /* the threshold is 2^(64 - halvings) */
};

int peaks_open(struct peaks *peaks); /* 0 or -ENOMEM */
void peaks_close(struct peaks *peaks);
/*
 * Counts units of a subject in a period, whose numbers never fall. `hash` is uniform. Its entry,
 * until the next call; NULL: it is not in the sample.
 */
struct peaks_entry *peaks_note(struct peaks *peaks, u64 hash, u64 units, u64 period);

/* The next entry after `entry`; NULL: the first. NULL at the end. */
struct peaks_entry *peaks_next(const struct peaks *peaks, struct peaks_entry *entry);

struct peaks_quantiles {
	u32 sampled;
	u64 subjects; /* exact, or an estimate: sampled << halvings */
	double error; /* of a share of subjects; 0: exact */
	u64 *peak;    /* of the sampled ones, ascending; to be freed */
};
/* Of all subjects, or of those that are not apart. 0 or -ENOMEM. */
int peaks_quantiles(const struct peaks *peaks, bool all, struct peaks_quantiles *ret);
/* The peak that at most this share of the subjects exceed. 0 without subjects. */
u64 peaks_at(const struct peaks_quantiles *quantiles, double part_above);
/* The share of the subjects whose peak exceeds a rate. */
double peaks_above(const struct peaks_quantiles *quantiles, u64 rate);

#endif
