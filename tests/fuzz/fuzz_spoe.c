// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a connection of SPOP. The first byte says in what pieces the rest comes, and
 * whether HELLO is agreed on before; then the rest may also be taken as the payload of a NOTIFY,
 * for which no length has to be right.
 */
#include "frontend_feed.h"
#include "request/frontends/spoe/spoe.h"
#include "request/frontends/spoe/spop.h"

static void send_hello(int fd)
{
	u8 memory[256];
	struct spop_writer writer =
		spop_frame_begin(memory, sizeof(memory), SPOP_HAPROXY_HELLO, 0, 0);

	spop_put_pair_string(&writer, "supported-versions", "2.0");
	spop_put_pair_number(&writer, "max-frame-size", 16380);
	spop_put_pair_string(&writer, "capabilities", "pipelining,async");
	feed_send(fd, memory, spop_frame_end(&writer), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 memory[32 * 1024];
	struct spop_writer writer;
	int fd;

	if (!size || size > 16000)
		return 0;
	feed_begin(&frontend_spoe);
	fd = feed_connect();
	if (data[0] & 0x40)
		send_hello(fd);
	if (data[0] & 0x80) {
		writer = spop_frame_begin(memory, sizeof(memory), SPOP_NOTIFY, 1, 1);
		memcpy(writer.at, data + 1, size - 1);
		writer.at += size - 1;
		feed_send(fd, memory, spop_frame_end(&writer), data[0] & 0x3f);
	} else {
		feed_send(fd, data + 1, size - 1, data[0] & 0x3f);
	}
	feed_close(fd);
	return 0;
}
