// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cmd_status.c - sluicectl status. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "lib/units.h"

static void print_interfaces(const json_t *interfaces)
{
	struct table *table = table_new("INTERFACE|STATE|>PASSED/S|>DROPPED/S|>PASSED|>DROPPED");
	const json_t *interface;
	char text[64];
	size_t i;

	json_array_foreach(interfaces, i, interface) {
		const json_t *packets = json_object_get(interface, "packets");
		const json_t *rate = json_object_get(interface, "per_second");
		const char *state = text_of(interface, "state");

		table_cell(table, "%s", text_of(interface, "name"));
		table_cell(table, "%s%s", state,
			   json_is_true(json_object_get(interface, "dispatcher")) ?
				   ", with other programs" : "");
		table_cell(table, "%s", short_rate(real_of(rate, "pass") + real_of(rate, "tag"),
						   text, sizeof(text)));
		table_cell(table, "%s", short_rate(real_of(rate, "drop"), text, sizeof(text)));
		table_cell(table, "%s", thousands((unsigned long long)(number_of(packets, "pass") +
								       number_of(packets, "tag")),
						  text, sizeof(text)));
		table_cell(table, "%s", thousands((unsigned long long)number_of(packets, "drop"),
						  text, sizeof(text)));
	}
	table_print(table, "no interface is configured; add one with: sluicectl attach IFACE");
	json_array_foreach(interfaces, i, interface)
		if (!strcmp(text_of(interface, "state"), "removed") ||
		    !strcmp(text_of(interface, "state"), "replaced"))
			printf("%s: NOT LIMITED: another program %s its XDP program; run: sluicectl attach %s\n",
			       text_of(interface, "name"), text_of(interface, "state"),
			       text_of(interface, "name"));
	json_array_foreach(interfaces, i, interface)
		if (text_of(interface, "error")[0])
			printf("%s: %s\n", text_of(interface, "name"), text_of(interface, "error"));
}

/* The text that runs instead of the file, and until when. */
static void print_applied(const json_t *applied, const json_t *pending)
{
	u64 left = (u64)number_of(pending, "left_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC;
	char text[64];

	if (json_is_object(applied))
		printf("APPLIED       %s, %s by uid %lld, instead of the file (sluicectl reload "
		       "returns to the file, save overwrites it)\n", text_of(applied, "file"),
		       text_of(applied, "at"), number_of(applied, "uid"));
	if (json_is_object(pending))
		printf("UNCONFIRMED   reverts in %s, at %s (sluicectl confirm keeps it, rollback reverts now)\n",
		       duration_format(left, text, sizeof(text)), text_of(pending, "until"));
}

static void print_reload(const char *what, const json_t *reload)
{
	if (json_is_true(json_object_get(reload, "ok")))
		printf("%-13s ok, %s\n", what, text_of(reload, "at"));
	else
		printf("%-13s FAILED, %s, keeping the previous rules: %s\n", what, text_of(reload, "at"),
		       text_of(reload, "error"));
}

static void print_http(const json_t *http)
{
	const json_t *address;
	size_t i;

	if (!json_is_object(http))
		return;
	print_reload("HTTP rules", json_object_get(http, "reload"));
	printf("HTTP tier     %lld rules, %lld workers, listening on", number_of(http, "rules"),
	       number_of(http, "workers"));
	json_array_foreach(json_object_get(http, "listen"), i, address)
		printf(" %s", json_string_value(address));
	printf("\n");
}

static void print_cluster(const json_t *cluster)
{
	const json_t *peer;
	size_t i;

	if (!json_is_object(cluster))
		return;
	printf("cluster       node %s, one of %lld; cluster store %s\n", text_of(cluster, "node"),
	       number_of(cluster, "nodes"),
	       json_is_true(json_object_get(cluster, "store_up")) ? "up" : "UNAVAILABLE");
	json_array_foreach(json_object_get(cluster, "peers"), i, peer) {
		printf(i ? ", " : "peers         ");
		printf("%s ", text_of(peer, "node"));
		if (json_is_true(json_object_get(peer, "alive")))
			printf("%.0f ms", (double)number_of(peer, "lag_ns") / 1e6);
		else
			printf("gone for %.0f s", (double)number_of(peer, "silent_ns") / 1e9);
	}
	if (i)
		printf("\n");
}

/* The lines of the packet tier. */
static void print_packet_tier(const json_t *status)
{
	const json_t *table = json_object_get(status, "table");
	unsigned long long ways = (unsigned long long)number_of(table, "ways");
	unsigned long long live = (unsigned long long)number_of(table, "live");
	char text[64], more[64];
	const json_t *price;
	size_t i;

	printf("banned        %lld sources\n", number_of(status, "bans"));
	printf("sessions      %lld login sessions are exempt from all rules\n",
	       number_of(status, "sessions"));
	printf("table         %s of %s entries in use (%.1f%%)\n",
	       thousands(live, text, sizeof(text)), thousands(ways, more, sizeof(more)),
	       ways ? 100.0 * (double)live / (double)ways : 0.0);
	if (number_of(table, "fingerprints"))
		printf("              %s evicted offenders are remembered\n",
		       thousands((unsigned long long)number_of(table, "fingerprints"), text,
				 sizeof(text)));
	json_array_foreach(json_object_get(status, "table_prices"), i, price)
		printf("              limit %s: table full after %.3gM packets from forged sources within %s\n",
		       text_of(price, "limit"), (double)number_of(price, "packets") / 1e6,
		       duration_format((u64)number_of(price, "within_ns"), text, sizeof(text)));
	if (!json_is_true(json_object_get(status, "can_attach")))
		printf("attaching     unavailable, as the attach helper has exited: restart sluiced\n");
	printf("\n");
	print_interfaces(json_object_get(status, "interfaces"));
}

static void print_status(const json_t *status)
{
	u64 uptime = (u64)number_of(status, "uptime_ns") / SL_NS_PER_SEC * SL_NS_PER_SEC;
	char text[64];

	printf("sluiced %s, pid %lld, up %s\n", text_of(status, "version"),
	       number_of(status, "pid"), duration_format(uptime, text, sizeof(text)));
	printf("file          %s\n", text_of(status, "config"));
	print_applied(json_object_get(status, "applied"), json_object_get(status, "pending"));
	print_reload("last reload", json_object_get(status, "reload"));
	printf("rules         generation %lld: %lld limits, %lld overrides, %lld blocked, %lld exempt\n",
	       number_of(status, "generation"), number_of(status, "limits"),
	       number_of(status, "overrides"),
	       number_of(status, "block"), number_of(status, "exempt"));
	printf("live changes  %lld%s\n", number_of(status, "live_changes"),
	       number_of(status, "live_changes") ? " (sluicectl diff shows them, save writes them "
						   "to the file)" : "");
	print_http(json_object_get(status, "http"));
	print_cluster(json_object_get(status, "cluster"));
	if (json_is_true(json_object_get(status, "packet_tier")))
		print_packet_tier(status);
	else
		printf("packet tier   off: no interfaces are configured\n");
}

int cmd_status(const struct cli *cli)
{
	return client_show(cli, "status", NULL, print_status);
}
