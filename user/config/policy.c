// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy.c - a policy's memory: defaults, copies, freeing, finding. */
#include "config/policy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"

int policy_new(const char *path, struct policy **ret)
{
	struct policy *policy = calloc(1, sizeof(*policy));

	if (!policy)
		return -ENOMEM;
	policy->path = strdup(path);
	if (!policy->path || keys_init(&policy_keys, policy)) {
		policy_free(policy);
		return -ENOMEM;
	}
	*ret = policy;
	return 0;
}

int policy_clone(const struct policy *from, struct policy **ret)
{
	struct policy *copy = calloc(1, sizeof(*copy));
	int rc = 0;

	if (!copy)
		return -ENOMEM;
	*copy = *from;
	copy->path = array_copy(from->path, strlen(from->path) + 1, 1, &rc);
	keys_copy(&policy_keys, copy, &rc);
	if (rc)
		policy_free(copy);
	else
		*ret = copy;
	return rc;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	keys_clear(&policy_keys, policy);
	free(policy->path);
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

const char *attach_mode_name(enum attach_mode mode)
{
	const char *name = name_of(interface_mode_names, mode);

	return name ? name : "?";
}

bool attach_mode_parse(const char *text, enum attach_mode *ret)
{
	const struct name *name = name_find(interface_mode_names, text);

	if (!name)
		return false;
	*ret = name->value;
	return true;
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

void block_sum_add(struct block_sum *sum, const struct sl_prefix *prefix)
{
	sum->count[prefix->family][prefix->len]++;
}

/* Of IPv6 /48s are counted, a longer prefix as one: 2^32 of them are the widest block. */
static const u8 sum_unit[SL_FAMILY_COUNT] = { [SL_V4] = 32, [SL_V6] = 48 };

static u64 sum_size(int family, u8 len)
{
	return len < sum_unit[family] ? 1ULL << (sum_unit[family] - len) : 1;
}

void block_sum_fit(struct block_sum *sum)
{
	for (int family = 0; family < SL_FAMILY_COUNT; family++) {
		u64 left = BLOCK_SUM * sum_size(family, widest[family]);
		u8 len = family == SL_V4 ? 33 : 129;

		while (len && sum->count[family][len - 1] <= left / sum_size(family, len - 1)) {
			len--;
			left -= sum->count[family][len] * sum_size(family, len);
		}
		sum->shortest[family] = len;
	}
}

int block_sum_check(const struct block_sum *sum, const struct sl_prefix *prefix, struct sl_err *err)
{
	char text[SL_PREFIX_TEXT];

	if (prefix->len >= sum->shortest[prefix->family])
		return 0;
	return sl_err_set(
		err, EPERM,
		"%s: the list would block more addresses than %d times a /%u; what is shorter than "
		"/%u does not fit; add --force to block it anyway",
		sl_prefix_format(prefix, text, sizeof(text)), BLOCK_SUM, widest[prefix->family],
		sum->shortest[prefix->family]);
}
