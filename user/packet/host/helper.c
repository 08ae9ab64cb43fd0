// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* helper.c - see helper.h. */
#include "packet/host/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "packet/dataplane/dp_attach.h"
#include "lib/log.h"

/* A slow machine verifies a program in a second; this is for a kernel that hangs. */
#define HELPER_TIMEOUT_S 30
#define HELPER_EXIT_MS 2000
#define HELPER_FD 3 /* its end of the socket pair */

enum helper_op {
	HELPER_ATTACH,
	HELPER_DETACH,
	HELPER_PURGE,
	HELPER_SESSIONS,
};

struct helper_request {
	u32 op; /* enum helper_op */
	u32 sequence;
	u32 mode;
	u32 how; /* enum attach_how */
	u32 slot;
	char ifname[16];
};

struct helper_reply {
	u32 sequence;
	int result; /* 0, or -errno and err */
	struct sl_err err;
	struct dp_attachment attachment;
	struct session_list sessions;
};

/* ------------------------------------------------------------------ in the helper */

static void helper_serve(const char *pin_dir, const struct helper_request *request,
			 struct helper_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->sequence = request->sequence;
	switch (request->op) {
	case HELPER_ATTACH:
		reply->result = attach_stub(pin_dir, request->ifname, request->mode, request->how,
					    request->slot, &reply->attachment, &reply->err);
		break;
	case HELPER_DETACH:
		reply->result = detach_stub(pin_dir, request->ifname, &reply->err);
		break;
	case HELPER_PURGE:
		reply->result = dp_purge(pin_dir, &reply->err);
		break;
	case HELPER_SESSIONS:
		reply->result = sessions_find("/proc", UTMP_FILE, &reply->sessions, &reply->err);
		break;
	default:
		reply->result = sl_err_set(&reply->err, EINVAL, "no such helper request");
	}
}

int helper_main(const char *pin_dir, helper_confine_fn confine)
{
	struct sl_err err = { .message = "" };
	struct helper_request request;
	struct helper_reply reply;

	prctl(PR_SET_NAME, HELPER_NAME);
	if (confine(&err) < 0) {
		log_error("attach helper: %s", err.message);
		return 1;
	}
	for (;;) {
		ssize_t n = recv(HELPER_FD, &request, sizeof(request), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(request))
			return 0;
		request.ifname[sizeof(request.ifname) - 1] = '\0';
		helper_serve(pin_dir, &request, &reply);
		if (send(HELPER_FD, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			return 0;
	}
}

/* ------------------------------------------------------------------ in the daemon */

/* In the child: another stack canary and address space than the daemon's, and none of its
 * descriptors. */
static void become_helper(int fd, const char *pin_dir)
{
	char *const argv[] = { HELPER_NAME, (char *)pin_dir, NULL };

	/*
	 * Ctrl-C and systemd signal all processes; the helper exits at the end of file on the
	 * socket. Ignored signals stay ignored.
	 */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (dup2(fd, HELPER_FD) < 0 || fcntl(HELPER_FD, F_SETFD, 0) < 0 ||
	    close_range(HELPER_FD + 1, ~0U, 0) < 0)
		log_error("attach helper: cannot prepare its descriptors: %s", strerror(errno));
	else
		execv("/proc/self/exe", argv);
	log_error("attach helper: cannot run /proc/self/exe: %s", strerror(errno));
	_exit(1);
}

int helper_start(struct helper *helper, const char *pin_dir, struct sl_err *err)
{
	struct timeval timeout = { .tv_sec = HELPER_TIMEOUT_S };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return sl_err_set(err, errno, "socketpair: %s", strerror(errno));
	helper->pid = fork();
	if (helper->pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return sl_err_set(err, errno, "fork: %s", strerror(errno));
	}
	if (helper->pid == 0)
		become_helper(pair[1], pin_dir);
	close(pair[1]);
	helper->fd = pair[0];
	setsockopt(helper->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(helper->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return 0;
}

/* True if it is gone within `ms`. */
static bool wait_gone(struct helper *helper, int ms)
{
	for (; ms > 0; ms--) {
		if (waitpid(helper->pid, NULL, WNOHANG) != 0)
			return true;
		usleep(1000);
	}
	return false;
}

void helper_stop(struct helper *helper)
{
	if (helper->fd >= 0)
		close(helper->fd);
	helper->fd = -1;
	if (helper->pid > 0 && !wait_gone(helper, HELPER_EXIT_MS)) {
		log_warn("the attach helper does not exit: killing it");
		kill(helper->pid, SIGKILL);
		wait_gone(helper, HELPER_EXIT_MS);
	}
	helper->pid = 0;
}

static int helper_gone(struct helper *helper, struct sl_err *err)
{
	if (helper->fd >= 0)
		close(helper->fd);
	helper->fd = -1;
	return sl_err_set(err, EPIPE,
			  "the attach helper has died: restart sluiced to attach, detach or find "
			  "login sessions (limits go on holding)");
}

static int helper_call(struct helper *helper, struct helper_request *request,
		       struct helper_reply *reply, struct sl_err *err)
{
	ssize_t n;

	if (helper->fd < 0)
		return helper_gone(helper, err);
	request->sequence = ++helper->sequence;
	if (send(helper->fd, request, sizeof(*request), MSG_NOSIGNAL) < 0)
		return helper_gone(helper, err);
	do {
		n = recv(helper->fd, reply, sizeof(*reply), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return sl_err_set(err, ETIMEDOUT,
					  "the attach helper did not answer within %d s",
					  HELPER_TIMEOUT_S);
		if (n != sizeof(*reply))
			return helper_gone(helper, err);
		/* A late reply belongs to an earlier request. */
	} while (n < 0 || reply->sequence != request->sequence);
	if (reply->result < 0 && err)
		*err = reply->err;
	return reply->result;
}

int helper_attach(struct helper *helper, const char *ifname, enum attach_mode mode,
		  enum attach_how how, u32 slot, struct dp_attachment *ret, struct sl_err *err)
{
	struct helper_request request = {
		.op = HELPER_ATTACH, .mode = mode, .how = how, .slot = slot
	};
	struct helper_reply reply;
	int r;

	snprintf(request.ifname, sizeof(request.ifname), "%s", ifname);
	r = helper_call(helper, &request, &reply, err);
	if (r >= 0)
		*ret = reply.attachment;
	return r;
}

int helper_detach(struct helper *helper, const char *ifname, struct sl_err *err)
{
	struct helper_request request = { .op = HELPER_DETACH };
	struct helper_reply reply;

	snprintf(request.ifname, sizeof(request.ifname), "%s", ifname);
	return helper_call(helper, &request, &reply, err);
}

int helper_purge(struct helper *helper, struct sl_err *err)
{
	struct helper_request request = { .op = HELPER_PURGE };
	struct helper_reply reply;

	return helper_call(helper, &request, &reply, err);
}

int helper_sessions(struct helper *helper, struct session_list *ret, struct sl_err *err)
{
	struct helper_request request = { .op = HELPER_SESSIONS };
	struct helper_reply reply;
	int r = helper_call(helper, &request, &reply, err);

	if (r >= 0)
		*ret = reply.sessions;
	return r;
}
