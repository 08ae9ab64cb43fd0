/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.h - one connection of the client, and one HTTP/1.1 request and response on it.
 *
 * It knows sockets and the form of a response. It does not know what a status means, nor retries.
 */
#ifndef SLUICE_CLIENT_EXCHANGE_H
#define SLUICE_CLIENT_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/un.h>

#include "lib/out.h"
#include "sluice/types.h"

/* A response's head and the beginning of its body; what is beyond that is read and dropped. */
#define CLIENT_RESPONSE_MAX 16384

/* A connection is in one of the client's two lists: idle ones, and those that a thread uses. */
struct client_conn {
	LIST_ENTRY(client_conn) link;
	int fd;		/* -1: none */
	bool used;	/* has had a response: the daemon may have closed it since */
	struct out out; /* the request; its buffer stays for the next one */
	char in[CLIENT_RESPONSE_MAX + 1];
};

/* Terminated texts within `in`; valid until the next exchange. */
struct client_response {
	int status;
	char *head, *body;
	bool keep;
};

/*
 * Sends what is in `out` and reads the response, until `deadline_ns` of CLOCK_MONOTONIC. Connects
 * where there is no connection, and once more where the daemon has closed an idle one. 0;
 * -ETIMEDOUT; -EPROTO: no HTTP; -ECONNREFUSED, -ENOENT and others of connect(2), read(2).
 * After an error the connection is closed.
 */
int client_exchange(struct client_conn *conn, const struct sockaddr_un *to, u64 deadline_ns,
		    struct client_response *ret);
/* A header's value, `name` in lower case, or NULL. */
const char *client_header(const struct client_response *response, const char *name);
void client_disconnect(struct client_conn *conn);

u64 client_now_ns(void);

#endif
