// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* http_def.c - see http_def.h: defaults, copies, freeing; the names of the section. */
#include "config/http_def.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/http_names.h"

const struct name listen_kind_names[] = {
	{ "listen", LISTEN_HTTP },
	{ "grpc", LISTEN_GRPC },
	{ "spoe", LISTEN_SPOE },
	{ "syslog", LISTEN_SYSLOG },
	{ NULL, 0 },
};

const struct name http_full_names[] = {
	{ "open", FULL_OPEN },
	{ "closed", FULL_CLOSED },
	{ NULL, 0 },
};

const struct name push_mode_names[] = {
	{ "enforce", PUSH_MODE_ENFORCE },
	{ "shadow", PUSH_MODE_SHADOW },
	{ "off", PUSH_MODE_OFF },
	{ NULL, 0 },
};

const struct name right_names[] = {
	{ "check", MAY_CHECK },
	{ "report", MAY_REPORT },
	{ "push", MAY_PUSH },
	{ "override", MAY_OVERRIDE },
	{ NULL, 0 },
};

const struct name log_values_names[] = {
	{ "hashed", false },
	{ "plain", true },
	{ NULL, 0 },
};

const struct name http_bool_names[] = {
	{ "true", true },
	{ "false", false },
	{ "yes", true },
	{ "no", false },
	{ NULL, 0 },
};

int http_def_new(struct http_def **ret)
{
	struct http_def *def = calloc(1, sizeof(*def));

	if (!def)
		return -ENOMEM;
	def->users = 1000000;
	def->log_bytes = 64000000;
	def->retry_jitter_permille = 100;
	def->max_delayed = 10000;
	def->decision_sample = 1;
	def->push_down = (struct push_limits_def){
		.max_sources = 10000, .max_share_permille = 100, .min_requests = 20,
		.prefix = { [SL_V4] = 32, [SL_V6] = 64 },
	};
	def->budget.active_ns = 60 * SL_NS_PER_SEC;
	def->budget.packets_per_request = 40;
	def->budget.max_users = 500;
	*ret = def;
	return 0;
}

static void free_strings(char **array, size_t count)
{
	for (size_t i = 0; array && i < count; i++)
		free(array[i]);
	free(array);
}

void http_def_free(struct http_def *def)
{
	if (!def)
		return;
	for (size_t i = 0; i < def->listen_count; i++) {
		free(def->listen[i].address);
		free(def->listen[i].clients);
		free(def->listen[i].group);
	}
	free(def->listen);
	for (size_t i = 0; i < def->caller_count; i++) {
		free(def->caller[i].name);
		free(def->caller[i].token_file);
		free(def->caller[i].cert_cn);
		free_strings(def->caller[i].domain, def->caller[i].domain_count);
	}
	free(def->caller);
	free_strings(def->host, def->host_count);
	free_strings(def->budget.user, def->budget.user_count);
	free(def->never_push_down);
	free(def->rules_dir);
	free(def->cert);
	free(def->key);
	free(def->client_ca);
	free(def->decision_log);
	free(def);
}

/* ---- copies: deep; NULL with *failed set out of memory ---- */

static char *copy_string(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

static void *copy_bytes(const void *from, size_t size, bool *failed)
{
	void *copy = size ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, from, size);
	*failed |= size && !copy;
	return copy;
}

static char **copy_strings(char *const *from, size_t count, bool *failed)
{
	char **copy = count ? calloc(count, sizeof(*copy)) : NULL;

	*failed |= count && !copy;
	for (size_t i = 0; copy && i < count; i++)
		copy[i] = copy_string(from[i], failed);
	return copy;
}

static void copy_listen(struct http_def *copy, const struct http_def *from, bool *failed)
{
	copy->listen = copy_bytes(from->listen, from->listen_count * sizeof(*from->listen), failed);
	copy->listen_count = copy->listen ? from->listen_count : 0;
	for (size_t i = 0; i < copy->listen_count; i++) {
		struct listen_def *to = &copy->listen[i];

		to->address = copy_string(to->address, failed);
		to->group = copy_string(to->group, failed);
		to->clients = copy_bytes(to->clients, to->client_count * sizeof(*to->clients),
					 failed);
	}
}

static void copy_callers(struct http_def *copy, const struct http_def *from, bool *failed)
{
	copy->caller = copy_bytes(from->caller, from->caller_count * sizeof(*from->caller), failed);
	copy->caller_count = copy->caller ? from->caller_count : 0;
	for (size_t i = 0; i < copy->caller_count; i++) {
		struct caller_def *to = &copy->caller[i];

		to->name = copy_string(to->name, failed);
		to->token_file = copy_string(to->token_file, failed);
		to->cert_cn = copy_string(to->cert_cn, failed);
		to->domain = copy_strings(to->domain, to->domain_count, failed);
	}
}

int http_def_clone(const struct http_def *from, struct http_def **ret)
{
	struct http_def *copy = malloc(sizeof(*copy));
	bool failed = false;

	if (!copy)
		return -ENOMEM;
	*copy = *from;
	copy_listen(copy, from, &failed);
	copy_callers(copy, from, &failed);
	copy->host = copy_strings(from->host, from->host_count, &failed);
	copy->budget.user = copy_strings(from->budget.user, from->budget.user_count, &failed);
	copy->never_push_down = copy_bytes(from->never_push_down, from->never_push_down_count *
					   sizeof(*from->never_push_down), &failed);
	copy->rules_dir = copy_string(from->rules_dir, &failed);
	copy->cert = copy_string(from->cert, &failed);
	copy->key = copy_string(from->key, &failed);
	copy->client_ca = copy_string(from->client_ca, &failed);
	copy->decision_log = copy_string(from->decision_log, &failed);
	if (failed) {
		http_def_free(copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
}

bool listen_is_local(const struct listen_def *listen)
{
	return !strncmp(listen->address, "unix:", 5) || !strncmp(listen->address, "127.", 4) ||
	       !strncmp(listen->address, "[::1]:", 6);
}
