/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_socket.h - the sockets of a simulated host: a part of sim_env.h. */
#ifndef SLUICE_SIM_SOCKET_H
#define SLUICE_SIM_SOCKET_H

/* An unconnected socket matches any peer. NULL if there is none. */
static inline const struct sim_socket *sim_socket(const struct socket_tuple *of)
{
	const struct sim_socket *best = NULL;
	const struct socket_tuple *at;
	u32 i;

	for (i = 0; i < sim->socket_count; i++) {
		at = &sim->socket[i].tuple;
		if (at->family != of->family || at->proto != of->proto ||
		    at->local_port != of->local_port ||
		    memcmp(&at->local, &of->local, sizeof(at->local)))
			continue;
		if (sim->socket[i].state != SOCKET_BOUND &&
		    (at->remote_port != of->remote_port ||
		     memcmp(&at->remote, &of->remote, sizeof(at->remote))))
			continue;
		if (!best || sim->socket[i].state > best->state)
			best = &sim->socket[i];
	}
	return best;
}

static inline enum socket_state env_socket(env_ctx *ctx, const struct socket_tuple *of)
{
	const struct sim_socket *socket = sim_socket(of);

	return socket ? socket->state : SOCKET_NONE;
}

static inline int env_socket_takes(env_ctx *ctx, const struct socket_tuple *of, u32 seq)
{
	const struct sim_socket *socket = sim_socket(of);

	return socket && socket->state == SOCKET_CONNECTED &&
	       seq - socket->rcv_nxt + socket->rcv_wnd <= 2 * socket->rcv_wnd;
}

#endif
