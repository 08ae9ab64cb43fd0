// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* running.c - the parts that follow the running configuration; see running.h. */
#include "control/running/running.h"

void running_join(struct running *run, struct running_part *part)
{
	struct running_part **at = &run->parts;

	while (*at)
		at = &(*at)->next;
	part->next = NULL;
	*at = part;
}

void running_leave(struct running *run, struct running_part *part)
{
	struct running_part **at = &run->parts;

	while (*at && *at != part)
		at = &(*at)->next;
	if (*at)
		*at = part->next;
}

void running_derive(struct running *run, struct policy *policy)
{
	policy_list_underive(policy);
	for (struct running_part *part = run->parts; part; part = part->next)
		if (part->ops->derive)
			part->ops->derive(part, policy);
}

void running_installed(struct running *run, const struct policy *policy)
{
	for (struct running_part *part = run->parts; part; part = part->next)
		if (part->ops->installed)
			part->ops->installed(part, policy);
}

/* Only the request tier's part can fail; the caller then configures earlier parts as before. */
int running_configure(struct running *run, const struct policy *policy, struct sl_err *err)
{
	int r = 0;

	for (struct running_part *part = run->parts; part && !r; part = part->next)
		if (part->ops->configure)
			r = part->ops->configure(part, policy, err);
	return r;
}

int running_reload_parts(struct running *run, struct sl_err *err)
{
	int r = 0;

	for (struct running_part *part = run->parts; part && !r; part = part->next)
		if (part->ops->reload)
			r = part->ops->reload(part, err);
	return r;
}

void running_rules(struct running *run)
{
	for (struct running_part *part = run->parts; part; part = part->next)
		if (part->ops->rules)
			part->ops->rules(part);
}
