/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * types.h - fixed-width types, the same for the BPF target, the daemon and the tests.
 *
 * Nothing is included here on purpose: clang -target bpf has no libc headers, and the
 * contract headers must compile unchanged everywhere.
 */
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

#ifndef SL_NO_SHORT_TYPES
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define SL_NS_PER_SEC 1000000000ULL

#define SL_BIT(n) (1ULL << (n))

#ifdef __cplusplus
#define SL_STATIC_ASSERT static_assert
#else
#define SL_STATIC_ASSERT _Static_assert
#endif

#endif
