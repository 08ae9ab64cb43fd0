// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* servers.c - see servers.h. */
#include "lib/servers.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_list noted; /* under `lock` */
static u32 oldest;		 /* once full: the next one to replace */

static bool list_has(const struct server_list *list, const struct sl_prefix *server)
{
	for (u32 i = 0; i < list->count; i++)
		if (sl_prefix_equal(&list->server[i], server))
			return true;
	return false;
}

/* An address as text; a zone ("%eth0") is left out. */
static bool parse(const char *text, struct sl_prefix *ret)
{
	char address[INET6_ADDRSTRLEN];
	const char *reason;
	size_t length = strcspn(text, "%");

	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	return !strchr(address, '/') && !sl_prefix_parse(address, ret, &reason);
}

bool servers_equal(const struct server_list *a, const struct server_list *b)
{
	for (u32 i = 0; i < a->count; i++)
		if (!list_has(b, &a->server[i]))
			return false;
	return a->count == b->count;
}

void servers_note(const struct sockaddr *addr)
{
	socklen_t size = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						    : sizeof(struct sockaddr_in6);
	char text[NI_MAXHOST];
	struct sl_prefix server;

	if ((addr->sa_family != AF_INET && addr->sa_family != AF_INET6) ||
	    getnameinfo(addr, size, text, sizeof(text), NULL, 0, NI_NUMERICHOST) ||
	    !parse(text, &server))
		return;
	pthread_mutex_lock(&lock);
	if (!list_has(&noted, &server)) {
		if (noted.count < SERVERS_KEPT)
			noted.server[noted.count++] = server;
		else
			noted.server[oldest++ % SERVERS_KEPT] = server;
	}
	pthread_mutex_unlock(&lock);
}

void servers_noted(struct server_list *list)
{
	pthread_mutex_lock(&lock);
	*list = noted;
	pthread_mutex_unlock(&lock);
}

void servers_add_resolvers(struct server_list *list, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512], text[128];
	struct sl_prefix server;

	while (file && list->count < SERVERS_KEPT && fgets(line, sizeof(line), file))
		if (sscanf(line, " nameserver %127s", text) == 1 && parse(text, &server) &&
		    !list_has(list, &server))
			list->server[list->count++] = server;
	if (file)
		fclose(file);
}
