// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* test_capture.c - captures of each kind, byte order and link type; those that are cut or
 * damaged. */
#include "lib/rng.h"
#include "replay/capture.h"
#include "unit/replay/pcap_file.h"

static u8 frame[CAPTURE_FRAME];
static struct sl_err error;

/* Opens a file; 0 or the error. */
static int open_file(const char *path, const char *filter, struct stream **ret_stream,
		     struct capture **ret)
{
	int r;

	memset(&error, 0, sizeof(error));
	memset(frame, 0, sizeof(frame));
	r = stream_open(path, ret_stream, &error);
	if (r)
		return r;
	r = capture_open(*ret_stream, filter, ret, &error);
	if (r) {
		if ((*ret_stream)->file)
			fclose((*ret_stream)->file);
		stream_free(*ret_stream);
	}
	return r;
}

/* Reads all; returns how many packets, and in *ret the result of the last call. */
static u32 read_all(const char *path, int *ret, struct capture_counts *ret_counts)
{
	struct capture *capture;
	struct stream *stream;
	u32 length, count = 0;
	u64 utc_ns;

	*ret = open_file(path, NULL, &stream, &capture);
	if (*ret)
		return 0;
	while ((*ret = capture_next(capture, frame, &length, &utc_ns, &error)) == 1)
		count++;
	if (ret_counts)
		*ret_counts = *capture_counts(capture);
	capture_close(capture);
	stream_free(stream);
	return count;
}

TEST(times_in_both_byte_orders_and_precisions)
{
	for (u32 i = 0; i < 4; i++) {
		struct pcap_file file = { .swapped = i & 1, .nano = i & 2 };
		struct capture *capture;
		struct stream *stream;
		u32 length;
		u64 utc_ns;

		pcap_begin(&file, "times", LINK_ETHERNET);
		pcap_frame(&file, 1234567891, "192.0.2.1", 53);
		pcap_end(&file);
		assert_int_equal(open_file(file.path, NULL, &stream, &capture), 0);
		assert_int_equal(capture_next(capture, frame, &length, &utc_ns, &error), 1);
		assert_int_equal(utc_ns - PCAP_UTC * SL_NS_PER_SEC,
				 file.nano ? 1234567891 : 1234567000);
		assert_int_equal(capture_next(capture, frame, &length, &utc_ns, &error), 0);
		capture_close(capture);
		stream_free(stream);
	}
}

/* Each link type gives the same packet, cooked ones behind Ethernet; what left the capturing
 * machine is left out. */
TEST(link_types)
{
	static const struct {
		u32 link, header;
		u8 bytes[20];
		u32 left_out;
	} rows[] = {
		{ LINK_RAW, 0, { 0 }, 0 },	   { LINK_NULL, 4, { 2 }, 0 },
		{ LINK_SLL, 16, { [14] = 8 }, 0 }, { LINK_SLL, 16, { [1] = 4, [14] = 8 }, 1 },
		{ LINK_SLL2, 20, { [0] = 8 }, 0 }, { LINK_SLL2, 20, { [0] = 8, [10] = 4 }, 1 },
	};
	struct frame built;

	frame_build(&(struct frame_spec){ .src = "192.0.2.1", .proto = 17, .dport = 53 }, &built);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pcap_file file = { .nano = true };
		struct capture_counts counts;
		u8 bytes[FRAME_MAX];
		u32 len = rows[i].header + built.length - 14;
		int r;

		memcpy(bytes, rows[i].bytes, rows[i].header);
		memcpy(bytes + rows[i].header, built.data + 14, built.length - 14);
		pcap_begin(&file, "links", rows[i].link);
		pcap_packet(&file, 0, bytes, len, len);
		pcap_end(&file);
		assert_int_equal(read_all(file.path, &r, &counts), 1 - rows[i].left_out);
		assert_int_equal(r, 0);
		assert_int_equal(counts.outgoing, rows[i].left_out);
		if (!rows[i].left_out)
			assert_memory_equal(frame + (rows[i].header < 16 ? 0 : 14), built.data + 14,
					    built.length - 14);
		if (rows[i].header >= 16 && !rows[i].left_out)
			assert_memory_equal(frame + 12, built.data + 12, 2);
	}
}

TEST(another_link_type_is_refused_by_name)
{
	struct pcap_file file = { .nano = true };
	int r;

	pcap_begin(&file, "wifi", LINK_WIFI);
	pcap_end(&file);
	assert_int_equal(read_all(file.path, &r, NULL), 0);
	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(error.message, "IEEE802_11"));
	assert_non_null(strstr(error.message, "accepted: Ethernet"));
}

/* What was not captured reads as zeros, also where the packet before was longer. */
TEST(a_short_capture_has_no_bytes_of_the_packet_before)
{
	struct pcap_file file = { .nano = true };
	struct capture_counts counts;
	u8 ones[300];
	int r;

	memset(ones, 1, sizeof(ones));
	pcap_begin(&file, "short", LINK_ETHERNET);
	pcap_packet(&file, 0, ones, 300, 300);
	pcap_packet(&file, 0, ones, 60, 300);
	pcap_packet(&file, 0, ones, 60, 60);
	pcap_end(&file);
	assert_int_equal(read_all(file.path, &r, &counts), 3);
	assert_int_equal(counts.cut, 1);
	for (u32 i = 0; i < 400; i++)
		assert_int_equal(frame[i], i < 60);
}

/* A capture of so many packets, and its bytes. */
static u32 write_capture(struct pcap_file *file, u32 packets, u8 *bytes, size_t room)
{
	FILE *in;
	u32 size;

	*file = (struct pcap_file){ .nano = true };
	pcap_begin(file, "whole", LINK_ETHERNET);
	for (u32 i = 0; i < packets; i++)
		pcap_frame(file, i, "192.0.2.1", 53);
	pcap_end(file);
	in = fopen(file->path, "r");
	size = fread(bytes, 1, room, in);
	fclose(in);
	return size;
}

static void put_bytes(const char *path, const u8 *bytes, size_t size)
{
	FILE *out = fopen(path, "w");

	fwrite(bytes, 1, size, out);
	fclose(out);
}

/* Cut anywhere: what is whole counts, and the error has the place. */
TEST(a_cut_capture)
{
	struct pcap_file file;
	u8 bytes[4096];
	u32 size = write_capture(&file, 5, bytes, sizeof(bytes)), each = (size - 24) / 5;
	char cut[64];

	snprintf(cut, sizeof(cut), "%s/cut", temp_dir);
	for (u32 len = 0; len <= size; len++) {
		u32 count;
		int r;

		put_bytes(cut, bytes, len);
		count = read_all(cut, &r, NULL);
		assert_int_equal(count, len < 24 ? 0 : (len - 24) / each);
		assert_int_equal(r, len < 24 ? -EINVAL : (len - 24) % each ? -EIO : 0);
		if (r == -EIO) {
			char place[64];

			snprintf(place, sizeof(place), "behind packet %u, at byte %u", count, len);
			assert_non_null(strstr(error.message, place));
		}
	}
}

/* Any bytes: an end or an error. */
TEST(damaged_captures)
{
	struct pcap_file file;
	u8 bytes[4096];
	u32 size = write_capture(&file, 20, bytes, sizeof(bytes));

	rng_start("damaged_captures");
	for (u32 round = 0; round < 500; round++) {
		u8 bad[4096];
		int r;

		memcpy(bad, bytes, size);
		for (u32 i = 0; i < 4; i++)
			bad[rng_below(size)] = rng();
		put_bytes(file.path, bad, size);
		assert_true(read_all(file.path, &r, NULL) <= 100);
		assert_true(r == 0 || ((r == -EINVAL || r == -EIO) && error.message[0]));
	}
}

int main(void)
{
	return test_run(temp_dir_make, temp_dir_drop);
}
