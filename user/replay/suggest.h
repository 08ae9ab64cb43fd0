/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * suggest.h - limits that fit the traffic there is: from quantiles of the rates of its sources,
 * networks and users (peaks.h), as YAML in shadow mode.
 *
 * Of packets, a subject's rate is its fullest second, and the limit R packets/s with a burst of 2
 * R: any interval of t seconds touches at most t + 2 whole seconds, so a subject that never sent
 * more than R in one second is never refused. Of requests it is the fullest minute of UTC, and the
 * limit that of fixed windows of a minute. So the share of subjects that a limit touches is at most
 * the share whose peak is above R. Of live traffic there are only means of 4 to 9 s: the burst is
 * ten seconds of R, and the share an estimate.
 *
 * An attack's own rate is no limit. A source or network with a tenth of the packets (networks.h)
 * and ten times as many as any of its size is apart: it is named, and limits are of the others.
 * With nothing to compare it with, a network of a thousand sources is, too. The rates of a smaller
 * network's sources still count one by one: that may be the local network.
 */
#ifndef SLUICE_REPLAY_SUGGEST_H
#define SLUICE_REPLAY_SUGGEST_H

#include <jansson.h>

#include "config/policy.h"
#include "replay/peaks.h"
#include "request/rules/request.h"

struct suggest;

enum suggest_kind { SUGGEST_PACKETS, SUGGEST_LIVE, SUGGEST_REQUESTS };

int suggest_open(enum suggest_kind kind, struct suggest **ret); /* 0 or -ENOMEM */
void suggest_close(struct suggest *suggest);			/* NULL is fine */

/*
 * Packets of a source; live: its rate, and the number of the look. `weight`: what networks are
 * judged by, its packets as far as they are known.
 */
void suggest_packets(struct suggest *suggest, struct sl_addr source, u8 family, u64 packets,
		     u64 weight, u64 second);
/* Live: the requests a minute of a value of a rule ("api/user"), and the number of the look. */
void suggest_user(struct suggest *suggest, const char *rule, const char *value, u64 requests,
		  u64 number);
/* Each descriptor by its domain and keys; of more than 8 such groups the later ones are left
 * out. */
void suggest_request(struct suggest *suggest, const struct request *request, u64 utc_ns);

/*
 * {"groups": [...], "apart": [...], "yaml": "...", "rules": "..."}: of each group its quantiles,
 * and the limit that touches at most `permille` of its subjects that are not apart; "rules" are
 * those of live users. NULL: no memory.
 */
json_t *suggest_report(struct suggest *suggest, u32 permille);

/*
 * Puts the limits of a report on packets into a configuration file; those of an earlier suggestion
 * are replaced. All are in shadow mode. The old file stays as FILE.bak.
 */
int suggest_write(const char *path, const json_t *report, struct sl_err *err);

/* From a capture or a log, without a configuration. 0 with *ret, or -errno and err. */
struct suggest_plan {
	const char *input, *filter, *domain;
	u32 permille;
};
int suggest_run(const struct suggest_plan *plan, json_t **ret, struct sl_err *err);

#endif
