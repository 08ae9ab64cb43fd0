/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoint.h - where a socket listens, as text: "192.0.2.1:80", "[2001:db8::1]:80",
 * "unix:/PATH". */
#ifndef SLUICE_LIB_ENDPOINT_H
#define SLUICE_LIB_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct endpoint {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	};
	socklen_t size;
};

/* No names, since a resolver may not be up. 0 or -EINVAL. */
int endpoint_parse(const char *text, struct endpoint *ret);

#endif
