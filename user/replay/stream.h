/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stream.h - the bytes of a capture or a log: a file or a pipe, also compressed by gzip.
 *
 * Its first bytes can be looked at before it is read, and a position is known at any time: errors
 * have it.
 */
#ifndef SLUICE_REPLAY_STREAM_H
#define SLUICE_REPLAY_STREAM_H

#include <stdio.h>

#include "lib/err.h"
#include "sluice/types.h"

#define STREAM_HEAD 8

struct stream {
	const char *path;
	FILE *file; /* to be closed by its user */
	u8 head[STREAM_HEAD];
	u32 head_len;
	char error[128]; /* of reading; "": none */
};

/* "-" is standard input. 0 with *ret to be freed after its file was closed, or -errno and err. */
int stream_open(const char *path, struct stream **ret, struct sl_err *err);
void stream_free(struct stream *stream); /* NULL is fine */
/* Bytes that were taken from it. */
u64 stream_position(const struct stream *stream);

#endif
