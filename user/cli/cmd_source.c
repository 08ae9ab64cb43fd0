// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_source.c - sluicectl source show. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_list_state(const char *what, const char *until)
{
	if (!until[0])
		printf("%-8s no\n", what);
	else if (!strcmp(until, "always"))
		printf("%-8s yes\n", what);
	else
		printf("%-8s until %s\n", what, until);
}

/* When the next packet passes, to the millisecond, or never. */
static void add_wait(struct table *table, const json_t *limit)
{
	const json_t *wait = json_object_get(limit, "wait_ns");
	u64 wait_ns = (u64)json_integer_value(wait);
	char text[64];

	if (!wait)
		table_cell(table, "now");
	else if (wait_ns == ~0ULL)
		table_cell(table, "never");
	else
		table_cell(table, "in %s", duration_format((wait_ns + 999999) / 1000000 * 1000000,
							   text, sizeof(text)));
}

/* The HTTP tier's part: users behind the source, its budget, its push-down. */
static void print_http(const json_t *http)
{
	const json_t *push = json_object_get(http, "push_down");

	if (!http)
		return;
	printf("users    %lld active, %lld of them well-behaved, %lld recent requests",
	       number_of(http, "users"), number_of(http, "well_behaved"),
	       number_of(http, "requests"));
	if (json_object_get(http, "limit"))
		printf("; budget %lld packets/s in %s", number_of(http, "budget_pps"),
		       text_of(http, "limit"));
	printf("\n");
	if (json_is_object(push))
		printf("pushed   down: %s%s%s, rule %s, until %s%s\n", text_of(push, "step"),
		       json_object_get(push, "rate") ? " " : "", text_of(push, "rate"),
		       text_of(push, "rule"), text_of(push, "until"),
		       json_is_true(json_object_get(push, "shadow")) ? " (shadow)" : "");
}

static void print_source(const json_t *result)
{
	struct table *table = table_new("LIMIT|STATE|>USED|>OF|UNIT|NEXT PASSES");
	const json_t *limit;
	char text[64];
	size_t i;

	printf("%s\n", text_of(result, "source"));
	print_list_state("exempt", text_of(result, "exempt_until"));
	print_list_state("blocked", text_of(result, "blocked_until"));
	print_list_state("banned", text_of(result, "banned_until"));
	print_http(json_object_get(result, "http"));
	printf("\n");
	json_array_foreach(json_object_get(result, "limits"), i, limit) {
		bool known = json_object_get(limit, "capacity") != NULL;

		table_cell(table, "%s", text_of(limit, "limit"));
		table_cell(table, "%s%s", text_of(limit, "state"),
			   known && json_object_get(limit, "shared") ? " (one bucket for all)" : "");
		if (!known) {
			for (int k = 0; k < 4; k++)
				table_cell(table, "-");
			continue;
		}
		table_cell(table, "%s", thousands((unsigned long long)number_of(limit, "used"),
						  text, sizeof(text)));
		table_cell(table, "%s", thousands((unsigned long long)number_of(limit, "capacity"),
						  text, sizeof(text)));
		table_cell(table, "%s", text_of(limit, "unit"));
		add_wait(table, limit);
	}
	table_print(table, "no limits");
}

int cmd_source_show(const struct cli *cli)
{
	return client_show(cli, "source show", json_pack("{s:s}", "source", cli->arg[0]),
			   print_source);
}
