// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy.c - a policy's memory: defaults, copies, freeing, finding. */
#include "config/cluster_def.h"
#include "config/http_def.h"
#include "config/policy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/model.h"
#include "config/override.h"

static char *copy_text(const char *from, int *rc)
{
	return from ? array_copy(from, strlen(from) + 1, 1, rc) : NULL;
}

void limit_init(struct limit_def *limit)
{
	*limit = (struct limit_def){
		.per = SL_PER_SOURCE,
		.prefix = { [SL_V4] = { 32 }, [SL_V6] = { 64 } },
		.prefix_scale = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } },
		.prefix_count = { 1, 1 },
		.rates.count = 1,
		.algorithm = SL_ALGO_TOKEN_BUCKET,
		.accounting = ACCOUNTING_PERCPU,
		.action = SL_ACT_DROP,
		.mode = SL_MODE_ENFORCE,
		.on_full = SL_FULL_OPEN,
	};
}

void limit_clear(struct limit_def *limit)
{
	match_clear(&limit->match);
	overrides_clear(limit);
	memset(limit, 0, sizeof(*limit));
}

static int limit_copy(const struct limit_def *from, struct limit_def *ret)
{
	int rc;

	*ret = *from;
	ret->override = NULL;
	ret->override_rates = NULL;
	ret->overrides_file = NULL;
	ret->override_count = ret->override_rates_count = 0;
	rc = match_copy(&from->match, &ret->match);
	if (!rc)
		rc = overrides_copy(from, ret);
	if (rc)
		limit_clear(ret);
	return rc;
}

int policy_new(const char *path, struct policy **ret)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	int rc = 0;

	if (!policy)
		return -ENOMEM;
	policy->path = copy_text(path, &rc);
	policy->table_buckets = 1000000;
	policy->max_values = MAX_VALUES_DEFAULT;
	policy->failsafe_rate = (struct rate){ 100, SL_NS_PER_SEC, RATE_CONNECTIONS };
	policy->essential_rate = (struct rate){ 1000, SL_NS_PER_SEC, RATE_PACKETS };
	policy->on_parse_error = SL_ACT_PASS;
	policy->fragments = SL_FRAG_LIMIT;
	policy->control_socket = copy_text("/run/sluice/control.sock", &rc);
	policy->state_dir = copy_text("/var/lib/sluice", &rc);
	policy->pin_dir = copy_text("/sys/fs/bpf/sluice", &rc);
	if (rc) {
		policy_free(policy);
		return rc;
	}
	*ret = policy;
	return 0;
}

/* After `*copy = *from`: replaces the arrays of `copy` by copies; on failure the rest are NULL. */
static int clone_arrays(const struct policy *from, struct policy *copy)
{
	int rc = 0;
	size_t i;

	copy->interface = array_copy(from->interface, from->interface_count,
				     sizeof(*from->interface), &rc);
	copy->failsafe = array_copy(from->failsafe, from->failsafe_count,
				    sizeof(*from->failsafe), &rc);
	for (i = 0; i < LIST_KIND_COUNT; i++) {
		copy->list[i].entry = array_copy(from->list[i].entry, from->list[i].count,
						 sizeof(*from->list[i].entry), &rc);
		copy->list[i].set = array_copy(from->list[i].set, from->list[i].set_count,
					       sizeof(*from->list[i].set), &rc);
	}

	copy->set_count = copy->limit_count = 0;
	copy->set = array_copy(from->set, from->set_count, sizeof(*from->set), &rc);
	for (i = 0; !rc && i < from->set_count; i++) {
		copy->set[i].prefix = array_copy(from->set[i].prefix, from->set[i].count,
						 sizeof(*from->set[i].prefix), &rc);
		copy->set[i].file = copy_text(from->set[i].file, &rc);
		copy->set_count++;
	}
	copy->limit = array_copy(from->limit, from->limit_count, sizeof(*from->limit), &rc);
	for (i = 0; !rc && i < from->limit_count; i++) {
		rc = limit_copy(&from->limit[i], &copy->limit[i]);
		copy->limit_count += !rc;
	}
	return rc;
}

int policy_clone(const struct policy *from, struct policy **ret)
{
	struct policy *copy = calloc(1, sizeof(*copy));
	int rc;

	if (!copy)
		return -ENOMEM;
	*copy = *from;
	rc = clone_arrays(from, copy);
	copy->http = NULL;
	copy->cluster = NULL;
	if (!rc && from->http)
		rc = http_def_clone(from->http, &copy->http);
	if (!rc && from->cluster)
		rc = cluster_def_clone(from->cluster, &copy->cluster);
	copy->path = copy_text(from->path, &rc);
	copy->metrics_listen = copy_text(from->metrics_listen, &rc);
	copy->control_socket = copy_text(from->control_socket, &rc);
	copy->control_group = copy_text(from->control_group, &rc);
	copy->control_read_group = copy_text(from->control_read_group, &rc);
	copy->state_dir = copy_text(from->state_dir, &rc);
	copy->pin_dir = copy_text(from->pin_dir, &rc);
	if (rc) {
		policy_free(copy);
		return rc;
	}
	*ret = copy;
	return 0;
}

void policy_free(struct policy *policy)
{
	size_t i;

	if (!policy)
		return;
	for (i = 0; i < policy->limit_count; i++)
		limit_clear(&policy->limit[i]);
	free(policy->limit);
	for (i = 0; i < policy->set_count; i++) {
		free(policy->set[i].prefix);
		free(policy->set[i].file);
	}
	free(policy->set);
	for (i = 0; i < LIST_KIND_COUNT; i++) {
		free(policy->list[i].entry);
		free(policy->list[i].set);
	}
	http_def_free(policy->http);
	cluster_def_free(policy->cluster);
	free(policy->interface);
	free(policy->failsafe);
	free(policy->path);
	free(policy->metrics_listen);
	free(policy->control_socket);
	free(policy->control_group);
	free(policy->control_read_group);
	free(policy->state_dir);
	free(policy->pin_dir);
	free(policy);
}

struct limit_def *policy_find_limit(const struct policy *policy, const char *name)
{
	size_t i;

	for (i = 0; i < policy->limit_count; i++)
		if (!strcmp(policy->limit[i].name, name))
			return &policy->limit[i];
	return NULL;
}

static int compare_set_name(const void *name, const void *set)
{
	return strcmp(name, ((const struct set_def *)set)->name);
}

const struct set_def *policy_find_set(const struct policy *policy, const char *name)
{
	if (!policy->set_count)
		return NULL;
	return bsearch(name, policy->set, policy->set_count, sizeof(*policy->set),
		       compare_set_name);
}

/* ------------------------------------------------------------------ interfaces, blocks */

static const char *const attach_mode_names[] = {
	[MODE_AUTO] = "auto",
	[MODE_NATIVE] = "native",
	[MODE_GENERIC] = "generic",
	[MODE_OFFLOAD] = "offload",
};

const char *attach_mode_name(enum attach_mode mode)
{
	return mode <= MODE_OFFLOAD ? attach_mode_names[mode] : "?";
}

bool attach_mode_parse(const char *text, enum attach_mode *ret)
{
	for (enum attach_mode mode = MODE_AUTO; mode <= MODE_GENERIC; mode++) {
		if (!strcmp(text, attach_mode_names[mode])) {
			*ret = mode;
			return true;
		}
	}
	return false;
}

const struct interface_def *policy_find_interface(const struct policy *policy, const char *ifname)
{
	for (size_t i = 0; i < policy->interface_count; i++)
		if (!strcmp(policy->interface[i].name, ifname))
			return &policy->interface[i];
	return NULL;
}

/* The shortest prefixes that can be blocked without --force; failsafe ports stay reachable. */
static const u8 widest[SL_FAMILY_COUNT] = { [SL_V4] = 8, [SL_V6] = 16 };

int block_check_width(const struct sl_prefix *prefix, struct sl_err *err)
{
	char text[SL_PREFIX_TEXT];

	if (prefix->len >= widest[prefix->family])
		return 0;
	return sl_err_set(err, EPERM,
			  "%s is wider than /%u: it would block %s on all but the failsafe ports; "
			  "add --force to block it anyway",
			  sl_prefix_format(prefix, text, sizeof(text)), widest[prefix->family],
			  prefix->len == 0 ? "everybody" : "a good part of the internet");
}
