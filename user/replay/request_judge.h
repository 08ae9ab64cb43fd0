/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request_judge.h - rules that judge the requests of a log; judge.h has the packets' part. */
#ifndef SLUICE_REPLAY_REQUEST_JUDGE_H
#define SLUICE_REPLAY_REQUEST_JUDGE_H

#include "replay/judge.h"
#include "request/engine/decide.h"

struct request_judge {
	struct policy *policy; /* NULL: rule files without a configuration */
	struct ruleset *rules;
	struct ledger ledger;
	struct judge_limit *limit; /* of each rule, by its index */
	char **name;		   /* "api/user", likewise */
	u64 swept_ns;
};

/* `path`: a configuration, a rule file or a directory of them. */
int request_judge_open(const char *path, bool enforce, struct request_judge **ret,
		       struct sl_err *err);
void request_judge_close(struct request_judge *judge); /* NULL is fine */

/* What became of one descriptor. */
struct request_part {
	enum outcome outcome; /* OUTCOME_COUNT: another descriptor's limit refused the request */
	float used;	      /* the share of its limit that is in use after it */
	u32 rule;
	bool has_rule;
};
/* Decides and charges; returns what became of the request as a whole. */
enum outcome request_judge_decide(struct request_judge *judge, const struct request *request,
				  struct sl_now now,
				  struct request_part part[REQUEST_DESCRIPTORS_MAX]);
void request_judge_notes(const struct request_judge *judge,
			 void (*add)(void *arg, const char *text), void *arg);

#endif
