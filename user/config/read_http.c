// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * read_http.c - the `http:` section: its keys, callers, state. Listeners are in
 * read_http_listen.c, push-downs and budgets in read_http_push.c; rules have files of their own
 * (user/request/rules/rule.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/http_names.h"
#include "config/keys.h"
#include "config/read_http.h"

#define PATH_LENGTH_MAX 3500
#define USERS_MAX 1000000000ULL
#define USERS_MIN 1000
#define LOG_BYTES_MIN 65536
#define LOG_BYTES_MAX (1ULL << 40)
#define WORKERS_MAX 256
#define CALLERS_MAX 1000

/* ---- plain values ---- */

int http_read_prefix(struct reader *r, const struct yaml_node *node, struct sl_prefix *ret)
{
	const char *accepted = "an address or a prefix, as 192.0.2.0/24", *text, *reason;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (sl_prefix_parse(text, ret, &reason))
		return read_fail(r, node, EINVAL, "found %s: %s", read_found(r, node), reason);
	return 0;
}

int http_read_count(struct reader *r, const struct yaml_node *node, u64 least, u64 most,
		    const char *accepted, u64 *ret)
{
	u64 count;
	int rc = read_count(r, node, &count);

	if (rc)
		return rc;
	if (count < least || count > most)
		return read_refuse(r, node, accepted);
	*ret = count;
	return 0;
}

int http_read_string(struct reader *r, const struct yaml_node *node, const char *accepted,
		     char ***array, size_t *count)
{
	const char *text;
	char *copy = NULL;
	int rc = read_text(r, node, accepted, &text);

	if (!rc)
		rc = read_copy(r, text, &copy);
	if (!rc && append(*array, *count, copy)) {
		free(copy);
		rc = read_no_memory(r);
	}
	return rc;
}

static int item_host(struct reader *r, const struct yaml_node *node, void *into)
{
	struct http_def *http = into;

	return http_read_string(r, node, "a host's name, as limiter.example", &http->host,
				&http->host_count);
}

static int key_hosts(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_each(r, node, item_host, into);
}

static int key_rules(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct http_def *)into)->rules_dir);
}

static int key_workers(struct reader *r, const struct yaml_node *node, void *into)
{
	u64 workers = 0;
	int rc;

	if (node->kind == YAML_TEXT && !strcmp(node->text, "auto"))
		return 0;
	rc = read_number(r, node, WORKERS_MAX, "auto, or 1 to 256", &workers);
	if (!rc && !workers)
		rc = read_refuse(r, node, "auto, or 1 to 256");
	((struct http_def *)into)->workers = workers;
	return rc;
}

/* ---- state, tls ---- */

static int key_users(struct reader *r, const struct yaml_node *node, void *into)
{
	return http_read_count(r, node, USERS_MIN, USERS_MAX, "1K to 1G (each takes about 20 bytes)",
			     &((struct http_def *)into)->users);
}

static int key_log_memory(struct reader *r, const struct yaml_node *node, void *into)
{
	return http_read_count(r, node, LOG_BYTES_MIN, LOG_BYTES_MAX, "64K to 1000G, in bytes",
			     &((struct http_def *)into)->log_bytes);
}

static int key_on_full(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, http_full_names, &value);

	if (!rc)
		((struct http_def *)into)->on_full = value;
	return rc;
}

static const struct key state_keys[] = {
	{ "users", .read = key_users },
	{ "log_memory", .read = key_log_memory },
	{ "on_full", .read = key_on_full },
};

static int key_state(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_map(r, node, state_keys, ARRAY_SIZE(state_keys), into);
}

static int key_cert(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct http_def *)into)->cert);
}

static int key_tls_key(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct http_def *)into)->key);
}

static int key_client_ca(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct http_def *)into)->client_ca);
}

static const struct key tls_keys[] = {
	{ "cert", .read = key_cert },
	{ "key", .read = key_tls_key },
	{ "client_ca", .read = key_client_ca },
};

static int key_tls(struct reader *r, const struct yaml_node *node, void *into)
{
	int rc = read_map(r, node, tls_keys, ARRAY_SIZE(tls_keys), into);

	if (!rc)
		rc = read_require(r, node, "cert");
	return rc ? rc : read_require(r, node, "key");
}

/* ---- callers ---- */

static int key_caller_name(struct reader *r, const struct yaml_node *node, void *into)
{
	char name[SL_NAME_MAX];
	int rc = read_identifier(r, node, name);

	return rc ? rc : read_copy(r, name, &((struct caller_def *)into)->name);
}

static int key_token_file(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct caller_def *)into)->token_file);
}

static int key_uid(struct reader *r, const struct yaml_node *node, void *into)
{
	struct caller_def *caller = into;
	u64 uid = 0;
	int rc = read_number(r, node, ~0U - 1, "a user's number, as 33", &uid);

	if (rc)
		return rc;
	caller->uid = uid;
	caller->has_uid = true;
	return 0;
}

static int key_cert_cn(struct reader *r, const struct yaml_node *node, void *into)
{
	const char *accepted = "a certificate's common name, up to 63 bytes", *text;
	int rc = read_text(r, node, accepted, &text);

	if (rc)
		return rc;
	if (strlen(text) > 63)
		return read_refuse(r, node, accepted);
	return read_copy(r, text, &((struct caller_def *)into)->cert_cn);
}

static int item_domain(struct reader *r, const struct yaml_node *node, void *into)
{
	struct caller_def *caller = into;

	return http_read_string(r, node, "the name of a domain", &caller->domain,
				&caller->domain_count);
}

static int key_domains(struct reader *r, const struct yaml_node *node, void *into)
{
	if (node->kind == YAML_LIST && !node->count)
		return read_refuse(r, node, "one or more names; without the key all domains");
	return read_each(r, node, item_domain, into);
}

static int item_may(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, right_names, &value);

	if (!rc)
		((struct caller_def *)into)->may |= value;
	return rc;
}

static int key_may(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_each(r, node, item_may, into);
}

static const struct key caller_keys[] = {
	{ "name", .read = key_caller_name },
	{ "token_file", .read = key_token_file },
	{ "uid", .read = key_uid },
	{ "cert_cn", .read = key_cert_cn },
	{ "domains", .read = key_domains },
	{ "may", .read = key_may },
};

static int item_caller(struct reader *r, const struct yaml_node *node, void *into)
{
	struct http_def *http = into;
	struct caller_def *caller;
	int rc;

	if (http->caller_count == CALLERS_MAX)
		return read_fail(r, node, EINVAL, "found another caller; accepted: up to %d",
				 CALLERS_MAX);
	if (append(http->caller, http->caller_count, (struct caller_def){ 0 }))
		return read_no_memory(r);
	caller = &http->caller[http->caller_count - 1];
	rc = read_map(r, node, caller_keys, ARRAY_SIZE(caller_keys), caller);
	if (!rc)
		rc = read_require(r, node, "name");
	if (!rc)
		rc = read_require(r, node, "may");
	if (rc)
		return rc;
	if (!caller->token_file && !caller->has_uid && !caller->cert_cn)
		return read_fail(r, node, EINVAL, "caller \"%s\" has no credentials; accepted: one or more "
				 "of token_file, uid, cert_cn", caller->name);
	if (caller->cert_cn && !http->client_ca)
		return read_fail(r, yaml_node_find(node, "cert_cn"), EINVAL,
				 "cert_cn is given, but "
				 "client certificates are not requested; accepted with it: "
				 "http.tls.client_ca");
	for (size_t i = 0; i + 1 < http->caller_count; i++)
		if (!strcmp(http->caller[i].name, caller->name))
			return read_fail(r, yaml_node_find(node, "name")->value, EINVAL,
					 "found \"%s\" "
					 "again; accepted: each name once",
					 caller->name);
	return 0;
}

static int key_callers(struct reader *r, const struct yaml_node *node, void *into)
{
	return yaml_node_is_null(node) ? 0 : read_each(r, node, item_caller, into);
}

/* ---- the rest ---- */

static int key_retry_jitter(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_percent(r, node, 0, 1000, "0% to 100%",
			    &((struct http_def *)into)->retry_jitter_permille);
}

static int key_max_delayed(struct reader *r, const struct yaml_node *node, void *into)
{
	return http_read_count(r, node, 0, 1000000, "0 to 1M",
			     &((struct http_def *)into)->max_delayed);
}

static int key_log_file(struct reader *r, const struct yaml_node *node, void *into)
{
	return read_path(r, node, PATH_LENGTH_MAX, &((struct http_def *)into)->decision_log);
}

static int key_log_sample(struct reader *r, const struct yaml_node *node, void *into)
{
	u64 sample = 1;
	int rc = http_read_count(r, node, 1, 1000000000, "1 (every decision) to 1G", &sample);

	if (!rc)
		((struct http_def *)into)->decision_sample = sample;
	return rc;
}

static int key_log_values(struct reader *r, const struct yaml_node *node, void *into)
{
	int value, rc = read_name(r, node, log_values_names, &value);

	if (!rc)
		((struct http_def *)into)->decision_values = value;
	return rc;
}

static const struct key log_keys[] = {
	{ "file", .read = key_log_file },
	{ "sample", .read = key_log_sample },
	{ "values", .read = key_log_values },
};

static int key_decision_log(struct reader *r, const struct yaml_node *node, void *into)
{
	int rc = read_map(r, node, log_keys, ARRAY_SIZE(log_keys), into);

	return rc ? rc : read_require(r, node, "file");
}

/* `tls` before the keys that need it. */
static const struct key http_keys[] = {
	{ "tls", .read = key_tls },
	{ "listen", .read = http_read_listen },
	{ "grpc", .read = http_read_grpc },
	{ "spoe", .read = http_read_spoe },
	{ "syslog", .read = http_read_syslog },
	{ "hosts", .read = key_hosts },
	{ "rules", .read = key_rules },
	{ "workers", .read = key_workers },
	{ "state", .read = key_state },
	{ "callers", .read = key_callers },
	{ "never_push_down", .read = http_read_never_push_down },
	{ "push_down", .read = http_read_push_down },
	{ "source_budget", .read = http_read_source_budget },
	{ "retry_jitter", .read = key_retry_jitter },
	{ "max_delayed", .read = key_max_delayed },
	{ "decision_log", .read = key_decision_log },
};

static int http_read(struct reader *r, const struct yaml_node *node, const struct key *key,
		     void *into)
{
	struct policy *policy = into;
	int rc;

	if (http_def_new(&policy->http))
		return read_no_memory(r);
	rc = read_map(r, node, http_keys, ARRAY_SIZE(http_keys), policy->http);
	if (!rc)
		rc = read_require(r, node, "rules");
	return rc ? rc : http_check_listen(r, node, policy->http);
}

static void http_lines(struct writer *w, const struct key *key, const void *section)
{
	const struct policy *policy = section;

	if (policy->http)
		write_http(w, policy->http);
}

static void http_copy(const struct key *key, void *section, int *rc)
{
	struct policy *policy = section;
	const struct http_def *from = policy->http;

	policy->http = NULL;
	if (from && !*rc)
		*rc = http_def_clone(from, &policy->http);
}

static void http_clear(const struct key *key, void *section)
{
	http_def_free(((struct policy *)section)->http);
	((struct policy *)section)->http = NULL;
}

const struct key_type type_http = {
	.name = "mapping", .read = http_read, .lines = http_lines, .copy = http_copy,
	.clear = http_clear,
};
