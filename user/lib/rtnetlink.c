// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rtnetlink.c - see rtnetlink.h. */
#include "lib/rtnetlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A link with many virtual functions has a long message. */
#define MESSAGE_MAX (1 << 20)

/* Returns 1 if more messages follow. */
static int receive(int fd, char *buf, bool dump, rtnetlink_each each, void *arg)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)buf;
	ssize_t got = recv(fd, buf, MESSAGE_MAX, 0);
	unsigned int left = (unsigned int)got;
	int r = 0;

	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	for (; !r && NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
		if (message->nlmsg_type == NLMSG_DONE)
			return 0;
		if (message->nlmsg_type == NLMSG_ERROR)
			r = ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
		else
			r = each(message, arg);
	}
	return r ? r : dump;
}

int rtnetlink_request(const struct nlmsghdr *request, rtnetlink_each each, void *arg)
{
	bool dump = (request->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;
	struct timeval timeout = { .tv_sec = 5 };
	char *buf = malloc(MESSAGE_MAX);

	if (fd < 0 || send(fd, request, request->nlmsg_len, 0) != (ssize_t)request->nlmsg_len)
		r = -errno;
	else
		r = buf ? 1 : -ENOMEM;
	if (r > 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	while (r > 0)
		r = receive(fd, buf, dump, each, arg);
	if (fd >= 0)
		close(fd);
	free(buf);
	return r;
}
