/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* http_def.h - the `http:` section of the configuration; part of the model (policy.h). */
#ifndef SLUICE_HTTP_DEF_H
#define SLUICE_HTTP_DEF_H

#include <stdbool.h>

#include "lib/addr.h"
#include "lib/units.h"

/*
 * Kind of listener, its key under http, and whether it is plain: without TLS and callers, so that
 * other machines need `clients`.
 */
#define LISTEN_KINDS(X)                                                                            \
	X(LISTEN_HTTP, listen, false)                                                              \
	LISTEN_KINDS_BESIDE_HTTP(X)
#define LISTEN_KINDS_BESIDE_HTTP(X)                                                                \
	X(LISTEN_GRPC, grpc, false)                                                                \
	X(LISTEN_SPOE, spoe, true)                                                                 \
	X(LISTEN_SYSLOG, syslog, true)

enum listen_kind {
#define LISTEN_KIND(id, key, plain) id,
	LISTEN_KINDS(LISTEN_KIND)
#undef LISTEN_KIND
		LISTEN_KIND_COUNT,
};

/* "127.0.0.1:8180", "unix:/run/sluice/http.sock", or a mapping of these. */
struct listen_def {
	char *address; /* as written: "ADDRESS:PORT" or "unix:PATH" */
	enum listen_kind kind;
	bool insecure; /* off loopback without TLS, set explicitly */
	bool tls;
	struct sl_prefix *clients; /* who may connect; none: every client */
	size_t client_count;
	u64 max_wait_ns;		 /* for requests without a wait of their own */
	bool has_max_wait;		 /* default: gRPC and SPOE 0, HTTP as in the rule */
	u64 max_connections;		 /* default 20K; not of syslog */
	u64 max_connections_per_address; /* default 1K; for addresses other than this host's */
	u32 mode;			 /* of a Unix socket; 0: 0660 */
	char *group;			 /* group of the socket file; NULL: the daemon's */
	int line, column;
};

/* What a caller may do: struct caller_def.may. */
enum caller_right {
	MAY_CHECK = 1,
	MAY_REPORT = 2,
	MAY_PUSH = 4,
	MAY_OVERRIDE = 8,
};

struct caller_def {
	char *name;
	char *token_file; /* NULL: none; the token is the file's first line */
	bool has_uid;
	u32 uid;
	char *cert_cn; /* NULL: none */
	char **domain; /* none: all */
	size_t domain_count;
	u32 may; /* enum caller_right, or-ed */
};

enum push_mode { PUSH_MODE_ENFORCE, PUSH_MODE_SHADOW, PUSH_MODE_OFF };

struct push_limits_def {
	enum push_mode mode;
	u64 max_sources;
	u32 max_share_permille;
	u64 min_requests;
	u8 prefix[SL_FAMILY_COUNT];
};

/* source_budget; limit "" : none */
struct budget_def {
	char limit[SL_NAME_MAX]; /* of the packet tier */
	char **user;		 /* "domain/rule", whose values are users */
	size_t user_count;
	u64 active_ns;
	struct rate base, max; /* packets */
	u64 packets_per_request;
	u64 max_users; /* behind one source, counted at most */
};

enum full_policy { FULL_OPEN, FULL_CLOSED };

struct http_def {
	struct listen_def *listen;
	size_t listen_count;
	char **host; /* accepted in Host, with localhost and addresses */
	size_t host_count;
	char *rules_dir;
	u32 workers;   /* 0: auto, one per CPU */
	u64 users;     /* default 1M */
	u64 log_bytes; /* default 64M */
	enum full_policy on_full;
	char *cert, *key, *client_ca; /* TLS; NULL: none */
	struct caller_def *caller;    /* none: check and report from loopback */
	size_t caller_count;
	struct sl_prefix *never_push_down;
	size_t never_push_down_count;
	struct push_limits_def push_down;
	struct budget_def budget;
	u32 retry_jitter_permille; /* default 100 */
	u64 max_delayed;	   /* default 10000 */
	char *decision_log;	   /* a file; NULL: none */
	u32 decision_sample;	   /* log 1 of this many decisions */
	bool decision_values;	   /* values in clear text, not hashed */
};

/* NULL is fine. */
void http_def_free(struct http_def *def);
int http_def_clone(const struct http_def *from, struct http_def **ret);

/* Whether only this machine can reach it: a Unix socket, or 127.0.0.0/8, ::1. */
bool listen_is_local(const struct listen_def *listen);

#endif
