/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pcap_file.h - captures as tests write them, byte by byte: shares nothing with libpcap, so that
 * the two can disagree.
 */
#ifndef SLUICE_TESTS_PCAP_FILE_H
#define SLUICE_TESTS_PCAP_FILE_H

#include <stdio.h>
#include <string.h>

#include "lib/test.h"
#include "lib/frame.h"
#include "lib/temp_dir.h"

#define PCAP_UTC 1700000000U
#define LINK_ETHERNET 1
#define LINK_NULL 0
#define LINK_RAW 101
#define LINK_SLL 113
#define LINK_SLL2 276
#define LINK_WIFI 105

struct pcap_file {
	FILE *out;
	char path[64];
	bool swapped, nano;
};

static void pcap_u32(struct pcap_file *file, u32 value)
{
	if (file->swapped)
		value = __builtin_bswap32(value);
	fwrite(&value, 4, 1, file->out);
}

static void pcap_begin(struct pcap_file *file, const char *name, u32 link)
{
	snprintf(file->path, sizeof(file->path), "%s/%s", temp_dir, name);
	file->out = fopen(file->path, "w");
	assert_non_null(file->out);
	pcap_u32(file, file->nano ? 0xa1b23c4d : 0xa1b2c3d4);
	/* version 2.4: two 16-bit numbers */
	pcap_u32(file, file->swapped ? 2U << 16 | 4 : 4U << 16 | 2);
	pcap_u32(file, 0);
	pcap_u32(file, 0);
	pcap_u32(file, 65535);
	pcap_u32(file, link);
}

/* At a time since the beginning; `length` on the wire, of which `len` bytes were captured. */
static void pcap_packet(struct pcap_file *file, u64 ns, const void *data, u32 len, u32 length)
{
	pcap_u32(file, PCAP_UTC + ns / SL_NS_PER_SEC);
	pcap_u32(file, ns % SL_NS_PER_SEC / (file->nano ? 1 : 1000));
	pcap_u32(file, len);
	pcap_u32(file, length);
	fwrite(data, 1, len, file->out);
}

static __attribute__((unused)) void pcap_frame(struct pcap_file *file, u64 ns, const char *source,
					       u16 dport)
{
	struct frame frame;

	frame_build(
		&(struct frame_spec){
			.src = source, .dst = "203.0.113.10", .proto = 17, .dport = dport },
		&frame);
	pcap_packet(file, ns, frame.data, frame.length, frame.length);
}

static void pcap_end(struct pcap_file *file)
{
	fclose(file->out);
}

#endif
