/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pcapng.h - writes the pcapng format (draft-ietf-opsawg-pcapng): a section, an interface block for
 * each interface as it first appears, a packet block with a comment for each packet. libpcap writes
 * only the older format, which has neither (docs/decisions/0040-events.md).
 */
#ifndef SLUICE_CLI_PCAPNG_H
#define SLUICE_CLI_PCAPNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PCAPNG_INTERFACES 64

struct pcapng {
	FILE *out;
	uint32_t snap; /* bytes of a frame, at most */
	char interface[PCAPNG_INTERFACES][16];
	bool raw[PCAPNG_INTERFACES]; /* its frames have no Ethernet header */
	uint32_t interfaces;
};

struct pcapng_packet {
	uint64_t at_ns; /* UTC */
	const char *interface;
	bool raw; /* `frame` begins with the IP header */
	const uint8_t *frame;
	uint32_t captured, length; /* bytes in `frame`, and of the whole frame */
	const char *comment;	   /* UTF-8 */
};

/* Begins a file. Errors are those of `out`: ferror(). */
void pcapng_begin(struct pcapng *p, FILE *out, uint32_t snap, const char *program);
void pcapng_write(struct pcapng *p, const struct pcapng_packet *packet);

#endif
