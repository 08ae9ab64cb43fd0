/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * large_pages.h - asks for large pages for a table that is read at random: call it before the
 * memory is written. It is a hint: without them the table is as good, and slower.
 */
#ifndef SLUICE_LIB_LARGE_PAGES_H
#define SLUICE_LIB_LARGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define LARGE_PAGE (2UL << 20)

static inline void large_pages(void *at, size_t size)
{
	uintptr_t from = ((uintptr_t)at + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	uintptr_t to = ((uintptr_t)at + size) & ~(LARGE_PAGE - 1);

	if (at && from < to)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

#endif
