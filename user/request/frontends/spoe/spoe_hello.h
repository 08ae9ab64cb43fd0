/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* spoe_hello.h - HAProxy's HELLO, the first frame of a connection. Pure. */
#ifndef SLUICE_HTTP_SPOE_HELLO_H
#define SLUICE_HTTP_SPOE_HELLO_H

#include "request/frontends/spoe/spop.h"

struct spoe_hello {
	u32 frame_max;			/* what it offers, at least SPOP_FRAME_MIN */
	bool pipelining;		/* it may ask on before it is answered */
	bool healthcheck;		/* it only wants to know whether we are there */
};

/* SPOP_NORMAL, or what its DISCONNECT has to say; ret is untouched then. */
enum spop_status spoe_hello_read(struct spop_frame *frame, struct spoe_hello *ret);

#endif
