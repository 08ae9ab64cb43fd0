// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_budget.c - the verifier's work for the programs of one interface: at most
 * BUDGET_INSNS instructions processed, of the million that it accepts. Beyond the budget
 * starting takes seconds, and another compiler's code may be refused.
 *
 * By default of the programs that were built; SLUICE_BPF names other object files (compilers.sh
 * gives those of other compilers).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sluice/abi.h"
#include "bpf/sluice.skel.h"
#include "lib/case.h"

#define BUDGET_INSNS 300000
#define LOG_STATS 4 /* BPF_LOG_STATS: the sums at the end, no instructions */
#define LOG_BYTES (1 << 20)
#define PROGRAMS_MAX 8

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* The number after "processed " in a verifier's log; -1 where there is none. */
static long processed(const char *log)
{
	const char *at = strstr(log, "processed ");

	return at ? atol(at + strlen("processed ")) : -1;
}

/* Loads the programs, without pins; returns the sum of processed instructions. */
static long load(struct bpf_object *object, const char *what)
{
	static char log[PROGRAMS_MAX][LOG_BYTES];
	struct bpf_program *program;
	long sum = 0, insns;
	u32 count = 0;
	int rc;

	bpf_object__for_each_program(program, object) {
		assert_true(count < PROGRAMS_MAX);
		log[count][0] = 0;
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, log[count++], LOG_BYTES);
		/* As dp_bpf.c loads them. */
		bpf_program__set_expected_attach_type(program, 0);
	}
	rc = bpf_object__load(object);
	count = 0;
	bpf_object__for_each_program(program, object) {
		insns = processed(log[count++]);
		print_message("%s: %s: %ld instructions processed\n", what,
			      bpf_program__name(program), insns);
		sum += insns;
		if (rc == 0)
			assert_true(insns > 0);
	}
	if (rc < 0)
		fail_msg("%s: the kernel does not take it: %s", what, strerror(-rc));
	bpf_object__close(object);
	return sum;
}

TEST(of_one_interface)
{
	/* As dp_bpf.c sets it: there may be no file of the kernel's configuration. */
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kconfig = "CONFIG_HZ=250\n");
	const char *files = getenv("SLUICE_BPF");
	char list[4096], *file, *rest;
	struct bpf_object *object;
	const void *elf;
	size_t size;
	long sum;

	if (geteuid() != 0) {
		assert_null(getenv("CI"));
		print_message("needs root\n");
		skip();
	}
	libbpf_set_print(print_warnings);
	if (!files) {
		elf = sluice_bpf__elf_bytes(&size);
		object = bpf_object__open_mem(elf, size, &opts);
		assert_non_null(object);
		assert_in_range(load(object, "sluice.bpf.o"), 1, BUDGET_INSNS);
		return;
	}
	snprintf(list, sizeof(list), "%s", files);
	for (file = strtok_r(list, " ", &rest); file; file = strtok_r(NULL, " ", &rest)) {
		object = bpf_object__open_file(file, &opts);
		if (!object)
			fail_msg("%s: cannot be opened", file);
		sum = load(object, file);
		if (sum > BUDGET_INSNS)
			fail_msg("%s: %ld instructions processed, at most %d", file, sum,
				 BUDGET_INSNS);
	}
}

TEST_MAIN
