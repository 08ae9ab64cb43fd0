// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pcapng.c - see pcapng.h. Numbers are in this machine's byte order, which the section's magic
 * number shows; a block is padded to 32 bits, with its length before and behind it.
 */
#include "cli/pcapng.h"

#include <string.h>

#define BLOCK_SECTION 0x0a0d0d0aU
#define BLOCK_INTERFACE 1U
#define BLOCK_PACKET 6U
#define MAGIC 0x1a2b3c4dU
#define LINK_ETHERNET 1
#define LINK_RAW 101
#define OPTION_COMMENT 1
#define OPTION_SHB_PROGRAM 4
#define OPTION_IF_NAME 2
#define OPTION_IF_RESOLUTION 9
#define NANOSECONDS 9
#define BLOCK_MAX 4096

/* A block in the making. */
struct block {
	uint8_t bytes[BLOCK_MAX];
	uint32_t size;
};

static void add(struct block *b, const void *data, uint32_t size)
{
	if (size > BLOCK_MAX - b->size)
		return;
	memcpy(b->bytes + b->size, data, size);
	b->size += size;
}

static void add_padded(struct block *b, const void *data, uint32_t size)
{
	static const uint8_t zeroes[4];

	add(b, data, size);
	add(b, zeroes, -size & 3);
}

static void add_u16(struct block *b, uint16_t value)
{
	add(b, &value, sizeof(value));
}

static void add_u32(struct block *b, uint32_t value)
{
	add(b, &value, sizeof(value));
}

static void add_option(struct block *b, uint16_t code, const void *data, size_t size)
{
	if (size > 1024)
		size = 1024;
	add_u16(b, code);
	add_u16(b, (uint16_t)size);
	add_padded(b, data, (uint32_t)size);
}

static void begin(struct block *b, uint32_t type)
{
	b->size = 0;
	add_u32(b, type);
	add_u32(b, 0); /* the length: end() */
}

/* Ends the options and the block, and writes it. */
static void end(struct block *b, FILE *out)
{
	uint32_t total;

	add_u32(b, 0);
	total = b->size + (uint32_t)sizeof(total);
	add_u32(b, total);
	memcpy(b->bytes + 4, &total, sizeof(total));
	fwrite(b->bytes, 1, b->size, out);
}

void pcapng_begin(struct pcapng *p, FILE *out, uint32_t snap, const char *program)
{
	const int64_t unknown = -1; /* the section's length */
	struct block b;

	memset(p, 0, sizeof(*p));
	p->out = out;
	p->snap = snap;
	begin(&b, BLOCK_SECTION);
	add_u32(&b, MAGIC);
	add_u16(&b, 1);
	add_u16(&b, 0);
	add(&b, &unknown, sizeof(unknown));
	add_option(&b, OPTION_SHB_PROGRAM, program, strlen(program));
	end(&b, out);
}

/* The number of an interface; its block is written where it is new. */
static uint32_t interface_of(struct pcapng *p, const char *name, bool raw)
{
	const uint8_t resolution = NANOSECONDS;
	struct block b;
	uint32_t i;

	for (i = 0; i < p->interfaces; i++)
		if (!strcmp(p->interface[i], name) && p->raw[i] == raw)
			return i;
	if (i == PCAPNG_INTERFACES)
		return 0;
	p->raw[i] = raw;
	snprintf(p->interface[i], sizeof(p->interface[i]), "%s", name);
	begin(&b, BLOCK_INTERFACE);
	add_u16(&b, raw ? LINK_RAW : LINK_ETHERNET);
	add_u16(&b, 0);
	add_u32(&b, p->snap);
	add_option(&b, OPTION_IF_NAME, name, strlen(name));
	add_option(&b, OPTION_IF_RESOLUTION, &resolution, sizeof(resolution));
	end(&b, p->out);
	return p->interfaces++;
}

void pcapng_write(struct pcapng *p, const struct pcapng_packet *packet)
{
	uint32_t captured = packet->captured < p->snap ? packet->captured : p->snap;
	uint32_t interface = interface_of(p, packet->interface, packet->raw);
	struct block b;

	begin(&b, BLOCK_PACKET);
	add_u32(&b, interface);
	add_u32(&b, (uint32_t)(packet->at_ns >> 32));
	add_u32(&b, (uint32_t)packet->at_ns);
	add_u32(&b, captured);
	add_u32(&b, packet->length);
	add_padded(&b, packet->frame, captured);
	add_option(&b, OPTION_COMMENT, packet->comment, strlen(packet->comment));
	end(&b, p->out);
}
