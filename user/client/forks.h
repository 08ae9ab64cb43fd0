/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * forks.h - locks that a child of fork(2) finds open, and what they protect whole. Only the thread
 * that calls fork() lives on in the child: a lock that another one held would never be opened.
 * So fork() takes all of them first (pthread_atfork(3)).
 */
#ifndef SLUICE_CLIENT_FORKS_H
#define SLUICE_CLIENT_FORKS_H

#include <pthread.h>

struct forked {
	pthread_mutex_t lock;
	/* Called in the child, with the lock: removes what was other threads'. */
	void (*in_child)(struct forked *forked);
	struct forked *next, **at;
};

/* Initializes the lock. -ENOMEM. */
int forked_add(struct forked *forked, void (*in_child)(struct forked *forked));
/* Destroys the lock, which nobody holds. */
void forked_remove(struct forked *forked);

#endif
