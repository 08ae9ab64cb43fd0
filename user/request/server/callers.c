// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * callers.c - see callers.h.
 *
 * Each identification of a caller is enough: its token, its uid on a Unix socket, the name in its
 * certificate. A peer that matches several callers has the rights of all.
 *
 * Without http.callers this host may check and report, and only clients of the Unix socket, which
 * has an owner and a mode, may push down.
 */
#include "request/server/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/publish.h"
#include "request/rules/request.h"
#include "request/server/token.h"

struct caller {
	const struct caller_def *def;
	bool has_token;
	struct token token;
};

struct callers {
	struct http_def *def; /* a copy, which the callers point into */
	struct caller *caller;
	size_t count;
};

/* ------------------------------------------------------------------ for workers */

/* Without a domain: any. */
static bool has_domain(const struct caller_def *def, struct bytes domain)
{
	for (size_t i = 0; i < def->domain_count; i++)
		if (bytes_equal(domain, def->domain[i]))
			return true;
	return !def->domain_count || !domain.len;
}

static u32 rights_of(const struct callers *callers, const struct peer_info *peer,
		     struct bytes token, struct bytes domain, bool *ret_bad_token)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	bool token_known = !token.len;
	u32 rights = 0;

	if (token.len)
		token_digest(token, digest);
	for (size_t i = 0; i < callers->count; i++) {
		const struct caller *caller = &callers->caller[i];
		const struct caller_def *def = caller->def;
		bool by_token = token.len && caller->has_token && token_is(&caller->token, digest);

		token_known |= by_token;
		if (!by_token && !(def->has_uid && peer->unix_socket && peer->uid == def->uid) &&
		    !(def->cert_cn && peer->cert_cn[0] && !strcmp(def->cert_cn, peer->cert_cn)))
			continue;
		if (has_domain(def, domain))
			rights |= def->may;
	}
	*ret_bad_token = !token_known;
	return token_known ? rights : 0;
}

u32 caller_rights(const struct http_tier *tier, const struct peer_info *peer, struct bytes token,
		  struct bytes domain, bool *ret_bad_token)
{
	const struct callers *callers;
	u32 rights = 0;

	*ret_bad_token = false;
	publish_read_lock();
	callers = publish_get(&tier->callers);
	if (callers && callers->count) {
		rights = rights_of(callers, peer, token, domain, ret_bad_token);
	} else if (token.len) {
		*ret_bad_token = true;
	} else if (peer->unix_socket) {
		rights = MAY_CHECK | MAY_REPORT | MAY_PUSH;
	} else if (peer->local) {
		rights = MAY_CHECK | MAY_REPORT;
	}
	publish_read_unlock(&tier->callers);
	return rights;
}

/* ------------------------------------------------------------------ read by the main thread */

static int read_callers(const struct http_def *def, struct callers **ret, struct sl_err *err)
{
	struct callers *callers = calloc(1, sizeof(*callers));
	int r = 0;

	if (callers && http_def_clone(def, &callers->def) == 0)
		callers->caller = calloc(def->caller_count + 1, sizeof(*callers->caller));
	if (!callers || !callers->caller) {
		callers_free(callers);
		return sl_err_set(err, ENOMEM, "out of memory");
	}
	for (size_t i = 0; !r && i < def->caller_count; i++) {
		struct caller *caller = &callers->caller[i];

		caller->def = &callers->def->caller[i];
		callers->count++;
		if (caller->def->token_file)
			r = token_read(caller->def->token_file, &caller->token, err);
		caller->has_token = caller->def->token_file;
	}
	if (r < 0)
		callers_free(callers);
	else
		*ret = callers;
	return r;
}

int callers_publish(struct http_tier *tier, const struct http_def *def, struct sl_err *err)
{
	struct callers *next = NULL;
	int r = read_callers(def, &next, err);

	if (r < 0)
		return r;
	callers_free(publish_swap(&tier->callers, next));
	return 0;
}

bool callers_changed(const struct http_tier *tier)
{
	const struct callers *callers = tier->callers;

	for (size_t i = 0; callers && i < callers->count; i++) {
		const struct caller *caller = &callers->caller[i];

		if (caller->has_token && token_changed(&caller->token, caller->def->token_file))
			return true;
	}
	return false;
}

void callers_free(struct callers *callers)
{
	if (!callers)
		return;
	http_def_free(callers->def);
	free(callers->caller);
	free(callers);
}
