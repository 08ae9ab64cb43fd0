// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* endpoint.c - see endpoint.h. */
#include "lib/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unix_parse(const char *path, struct endpoint *ret)
{
	if (path[0] != '/' || strlen(path) >= sizeof(ret->un.sun_path))
		return -EINVAL;
	ret->un.sun_family = AF_UNIX;
	strcpy(ret->un.sun_path, path);
	ret->size = sizeof(ret->un);
	return 0;
}

int endpoint_parse(const char *text, struct endpoint *ret)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "";
	size_t len = colon ? (size_t)(colon - text) : 0, digits = strspn(port, "0123456789");
	bool v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
	char host[INET6_ADDRSTRLEN];

	memset(ret, 0, sizeof(*ret));
	if (!strncmp(text, "unix:", 5))
		return unix_parse(text + 5, ret);
	if (!digits || digits > 5 || port[digits] || atoi(port) > 65535 ||
	    len - 2 * v6 >= sizeof(host))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)(len - 2 * v6), text + v6);
	ret->any.sa_family = v6 ? AF_INET6 : AF_INET;
	ret->v4.sin_port = htons((in_port_t)atoi(port)); /* where that of v6 is */
	ret->size = v6 ? sizeof(ret->v6) : sizeof(ret->v4);
	return inet_pton(ret->any.sa_family, host,
			 v6 ? (void *)&ret->v6.sin6_addr : (void *)&ret->v4.sin_addr) == 1
		       ? 0
		       : -EINVAL;
}
