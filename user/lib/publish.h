/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * publish.h - a pointer that threads read while another thread replaces the object: RCU (liburcu),
 * visible to ThreadSanitizer. Readers have registered with rcu_register_thread().
 *
 *     publish_read_lock(); rules = publish_get(&in_force); ...; publish_read_unlock();
 *     old = publish_swap(&in_force, next); free(old);
 */
#ifndef SLUICE_LIB_PUBLISH_H
#define SLUICE_LIB_PUBLISH_H

#include <urcu.h>

/* The synchronization of the library, repeated for ThreadSanitizer, which does not see it. */
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

#define publish_read_unlock(pointer)                                                               \
	do {                                                                                       \
		publish_ends(pointer);                                                             \
		rcu_read_unlock();                                                                 \
	} while (0)

/* Returns the previous pointer after all readers have released it. */
#define publish_swap(pointer, next)                                                                \
	({                                                                                         \
		__typeof__(*(pointer)) old_ =                                                      \
			__atomic_exchange_n(pointer, next, __ATOMIC_ACQ_REL);                      \
                                                                                                   \
		synchronize_rcu();                                                                 \
		publish_waited(pointer);                                                           \
		old_;                                                                              \
	})

#endif
