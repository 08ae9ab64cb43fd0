// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* forks.c - see forks.h. */
#include <errno.h>
#include <stddef.h>

#include "client/forks.h"

/* The lock of the list is taken before those of its members, never while one of them is held. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct forked *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int at_fork;

static void before(void)
{
	pthread_mutex_lock(&list_lock);
	for (struct forked *f = list; f; f = f->next)
		pthread_mutex_lock(&f->lock);
}

static void in_parent(void)
{
	for (struct forked *f = list; f; f = f->next)
		pthread_mutex_unlock(&f->lock);
	pthread_mutex_unlock(&list_lock);
}

static void in_child(void)
{
	for (struct forked *f = list; f; f = f->next)
		f->in_child(f);
	in_parent();
}

static void register_once(void)
{
	at_fork = pthread_atfork(before, in_parent, in_child);
}

int forked_add(struct forked *f, void (*child)(struct forked *f))
{
	pthread_once(&once, register_once);
	if (at_fork)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	f->in_child = child;
	pthread_mutex_lock(&list_lock);
	f->next = list;
	f->at = &list;
	if (list)
		list->at = &f->next;
	list = f;
	pthread_mutex_unlock(&list_lock);
	return 0;
}

void forked_remove(struct forked *f)
{
	pthread_mutex_lock(&list_lock);
	*f->at = f->next;
	if (f->next)
		f->next->at = f->at;
	pthread_mutex_unlock(&list_lock);
	pthread_mutex_destroy(&f->lock);
}
