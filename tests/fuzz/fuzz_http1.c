// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a connection of HTTP/1.1, with all that answers there behind it. The first byte
 * says in what pieces the rest comes.
 */
#include "frontend_feed.h"
#include "request/frontends/http1/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;

	if (!size)
		return 0;
	feed_begin(&frontend_http1);
	fd = feed_connect();
	feed_send(fd, data + 1, size - 1, data[0] & 0x3f);
	feed_close(fd);
	return 0;
}
