// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cluster_notes.c - the threads' mailboxes: lists under one lock that is held for a few
 * instructions, and an eventfd that wakes the receiver.
 */
#include "cluster/bus/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/log.h"

#define NOTES_MAX 8192

int notes_open(struct cluster_notes *notes, struct event_base *base, event_callback_fn take,
	       void *arg)
{
	notes->last = &notes->first;
	notes->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (notes->wake_fd < 0)
		return -errno;
	notes->wake = event_new(base, notes->wake_fd, EV_READ | EV_PERSIST, take, arg);
	return notes->wake && event_add(notes->wake, NULL) == 0 ? 0 : -ENOMEM;
}

void note_free(struct cluster_note *note)
{
	json_decref(note->message);
	free(note->body);
	free(note);
}

void notes_close(struct cluster_notes *notes)
{
	struct cluster_note *next;

	for (struct cluster_note *note = notes->first; note; note = next) {
		next = note->next;
		note_free(note);
	}
	if (notes->wake)
		event_free(notes->wake);
	if (notes->wake_fd >= 0)
		close(notes->wake_fd);
}

void notes_wake(struct cluster_notes *notes)
{
	u64 one = 1;

	/* write() fails only if 2^64 - 2 wakeups are pending. */
	if (write(notes->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void notes_put(struct cluster *c, struct cluster_notes *notes, struct cluster_note *note)
{
	bool full;

	note->next = NULL;
	pthread_mutex_lock(&c->lock);
	full = notes->count >= NOTES_MAX;
	if (full) {
		notes->dropped++;
	} else {
		*notes->last = note;
		notes->last = &note->next;
		notes->count++;
	}
	pthread_mutex_unlock(&c->lock);
	if (full)
		note_free(note);
	notes_wake(notes);
}

struct cluster_note *notes_take(struct cluster *c, struct cluster_notes *notes)
{
	struct cluster_note *first;
	u64 count;

	if (read(notes->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_error("cluster: cannot read an eventfd: %s", strerror(errno));
	pthread_mutex_lock(&c->lock);
	first = notes->first;
	notes->first = NULL;
	notes->last = &notes->first;
	notes->count = 0;
	pthread_mutex_unlock(&c->lock);
	return first;
}
