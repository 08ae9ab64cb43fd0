/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * publish.h - a pointer that threads read while another replaces what it points to: RCU (liburcu),
 * where ThreadSanitizer sees it, too. Readers have registered with rcu_register_thread().
 *
 *     publish_read_lock(); rules = publish_get(&in_force); ...; publish_read_unlock();
 *     old = publish_swap(&in_force, next); free(old);
 */
#ifndef SLUICE_LIB_PUBLISH_H
#define SLUICE_LIB_PUBLISH_H

#include <urcu.h>

/* What the library does in memory that no sanitizer watches. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define publish_ends(at) __tsan_release((void *)(at))
#define publish_waited(at) __tsan_acquire((void *)(at))
#else
#define publish_ends(at) ((void)(at))
#define publish_waited(at) ((void)(at))
#endif

#define publish_read_lock() rcu_read_lock()

/* Valid until publish_read_unlock() of the same pointer. */
#define publish_get(pointer) __atomic_load_n(pointer, __ATOMIC_ACQUIRE)

#define publish_read_unlock(pointer)			\
	do {						\
		publish_ends(pointer);			\
		rcu_read_unlock();			\
	} while (0)

/* Returns the one before, which no reader has any more. */
#define publish_swap(pointer, next)				\
	({								\
		__typeof__(*(pointer)) old_ =				\
			__atomic_exchange_n(pointer, next, __ATOMIC_ACQ_REL);	\
									\
		synchronize_rcu();					\
		publish_waited(pointer);				\
		old_;							\
	})

#endif
