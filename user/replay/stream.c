// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * stream.c - see stream.h. A FILE over zlib's reader, since libpcap takes a FILE: gzread() passes
 * through what is not compressed.
 */
#include "replay/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER (256 * 1024)

struct stream_gz {
	struct stream stream;
	gzFile gz;
	u32 given; /* bytes of `head` that were read again */
	u64 read;  /* bytes that the FILE was given */
};

static ssize_t read_some(void *cookie, char *to, size_t size)
{
	struct stream_gz *s = cookie;
	int got, code;

	if (s->given < s->stream.head_len) {
		got = s->stream.head_len - s->given;
		got = (size_t)got < size ? got : (int)size;
		memcpy(to, s->stream.head + s->given, got);
		s->given += got;
	} else {
		got = gzread(s->gz, to, size < BUFFER ? size : BUFFER);
		/* A file that ends too early: what was there counts, and the error comes behind
		 * it. */
		if (got < (int)size && gzerror(s->gz, &code) && code < 0 && code != Z_BUF_ERROR)
			snprintf(s->stream.error, sizeof(s->stream.error), "%s",
				 code == Z_ERRNO ? strerror(errno) : gzerror(s->gz, &code));
		else if (got == 0 && gzerror(s->gz, &code) && code == Z_BUF_ERROR)
			snprintf(s->stream.error, sizeof(s->stream.error),
				 "the gzip data ends early");
	}
	if (got > 0)
		s->read += got;
	return got;
}

/* ftell() alone: nothing seeks. */
static int tell(void *cookie, off64_t *at, int whence)
{
	const struct stream_gz *s = cookie;

	if (whence != SEEK_CUR || *at) {
		errno = ESPIPE;
		return -1;
	}
	*at = s->read;
	return 0;
}

static int close_gz(void *cookie)
{
	struct stream_gz *s = cookie;

	gzclose(s->gz);
	s->gz = NULL;
	return 0;
}

int stream_open(const char *path, struct stream **ret, struct sl_err *err)
{
	static const cookie_io_functions_t functions = { .read = read_some,
							 .seek = tell,
							 .close = close_gz };
	struct stream_gz *s = calloc(1, sizeof(*s));
	int got, r;

	if (!s)
		return sl_err_set(err, ENOMEM, "out of memory");
	errno = 0;
	s->gz = strcmp(path, "-") ? gzopen(path, "r") : gzdopen(dup(STDIN_FILENO), "r");
	if (!s->gz) {
		r = errno ? errno : ENOMEM;
		free(s);
		return sl_err_set(err, r, "%s: %s", path, strerror(r));
	}
	gzbuffer(s->gz, BUFFER);
	got = gzread(s->gz, s->stream.head, STREAM_HEAD);
	s->stream.head_len = got > 0 ? got : 0;
	s->stream.path = path;
	s->stream.file = got < 0 ? NULL : fopencookie(s, "r", functions);
	if (!s->stream.file) {
		r = got < 0 && errno ? errno : EIO;
		sl_err_set(err, r, "%s: cannot be read: %s", path, gzerror(s->gz, &got));
		gzclose(s->gz);
		free(s);
		return -r;
	}
	setvbuf(s->stream.file, NULL, _IOFBF, BUFFER);
	*ret = &s->stream;
	return 0;
}

void stream_free(struct stream *stream)
{
	free(stream);
}

u64 stream_position(const struct stream *stream)
{
	return ftell(stream->file);
}
