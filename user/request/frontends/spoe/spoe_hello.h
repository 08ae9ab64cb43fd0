/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spoe_hello.h - HAProxy's HELLO, the first frame of a connection. Pure. */
#ifndef SLUICE_HTTP_SPOE_HELLO_H
#define SLUICE_HTTP_SPOE_HELLO_H

#include "request/frontends/spoe/spop.h"

struct spoe_hello {
	u32 frame_max;			/* its maximum, at least SPOP_FRAME_MIN */
	bool pipelining;		/* it may send requests before the previous response */
	bool healthcheck;		/* it only checks whether we are alive */
};

/* SPOP_NORMAL, or the status of a DISCONNECT; ret is then untouched. */
enum spop_status spoe_hello_read(struct spop_frame *frame, struct spoe_hello *ret);

#endif
