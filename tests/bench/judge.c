// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * judge - runs the data path (judge.bpf.c) for the live frames of scripts/bench.sh, without a
 * daemon.
 *
 *     judge DEV PINS       one variant per limit below, each over maps of its own; a line on
 *                          standard input names what is put on DEV ("exact-10", "off"), answered
 *                          by "on NAME"
 *
 * PINS is a directory on bpffs that is made, and removed at the end.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "tests/bench/bench.h"
#include "tests/bench/judge.skel.h"

#define BUCKETS 1000000

struct judge {
	char name[32];
	char pins[256];
	struct dp *dp;
	struct judge_bpf *skel;
};

/* ------------------------------------------------------------------ the program */

static void judge_open(struct judge *j, const char *dir, const char *name)
{
	struct sl_config *config;
	struct bpf_map *map;
	struct sl_err err;
	u32 sets, zero = 0, account_at = sl_stage_at(SL_STAGE_ACCOUNT, 0, 0);
	int live, account;

	snprintf(j->name, sizeof(j->name), "%s", name);
	snprintf(j->pins, sizeof(j->pins), "%s/%s", dir, name);
	if (dp_bpf_open(j->pins, BUCKETS, &j->dp, NULL, &err))
		die(j->pins, &err);
	sets = j->dp->table_sets;
	j->skel = judge_bpf__open();
	if (!j->skel)
		die("judge_bpf", NULL);
	config = (void *)&j->skel->rodata->config;
	config->table_sets = sets;
	bpf_map__set_max_entries(j->skel->maps.table, sets);
	bpf_object__for_each_map(map, j->skel->obj) {
		char path[512];

		if (bpf_map__is_internal(map) || map == j->skel->maps.jump ||
		    map == j->skel->maps.packet_now)
			continue;
		snprintf(path, sizeof(path), "%s/%s", j->pins, bpf_map__name(map));
		/* Pinned by dp_bpf_open: the one there is taken. */
		if (access(path, F_OK) || bpf_map__set_pin_path(map, path))
			die(path, NULL);
	}
	if (judge_bpf__load(j->skel))
		die("load", NULL);
	live = bpf_program__fd(j->skel->progs.judge_live);
	if (bpf_map_update_elem(bpf_map__fd(j->skel->maps.jump), &zero, &live, BPF_ANY))
		die("jump", NULL);
	account = bpf_program__fd(j->skel->progs.judge_account);
	if (bpf_map_update_elem(bpf_map__fd(j->skel->maps.stages), &account_at, &account, BPF_ANY))
		die("stages", NULL);
}

static void judge_close(struct judge *j)
{
	judge_bpf__destroy(j->skel);
	j->dp->ops->close(j->dp);
	dp_purge(j->pins, NULL);
}

static int live(const char *dev, const char *dir)
{
	static const char *const limits[][2] = {
		{ "exact-10", "rate: 10 packets/s, accounting: exact" },
		{ "percpu-10", "rate: 10 packets/s, accounting: percpu" },
		{ "exact-1000", "rate: 1000 packets/s, accounting: exact" },
		{ "percpu-1000", "rate: 1000 packets/s, accounting: percpu" },
	};
	enum { VARIANTS = sizeof(limits) / sizeof(limits[0]) };
	struct judge judges[VARIANTS] = { 0 };
	int ifindex = if_nametoindex(dev);
	char line[64];

	if (!ifindex)
		die(dev, NULL);
	for (int i = 0; i < VARIANTS; i++) {
		char yaml[256];

		snprintf(yaml, sizeof(yaml), "limits: [{name: sources, %s}]\n", limits[i][1]);
		judge_open(&judges[i], dir, limits[i][0]);
		bench_apply(judges[i].dp, "bench", yaml, NULL, 0);
	}
	printf("on off\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int fd = -1;

		line[strcspn(line, "\n")] = 0;
		for (int i = 0; i < VARIANTS; i++) {
			if (!strcmp(line, judges[i].name))
				fd = bpf_program__fd(judges[i].skel->progs.judge_stub);
		}
		if (fd < 0 && strcmp(line, "off")) {
			fprintf(stderr, "judge: no variant %s\n", line);
			return 2;
		}
		bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
		if (fd >= 0 && bpf_xdp_attach(ifindex, fd, XDP_FLAGS_DRV_MODE, NULL))
			die(dev, NULL);
		printf("on %s\n", line);
		fflush(stdout);
	}
	bpf_xdp_detach(ifindex, XDP_FLAGS_DRV_MODE, NULL);
	for (int i = 0; i < VARIANTS; i++)
		judge_close(&judges[i]);
	return 0;
}

int main(int argc, char **argv)
{
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: judge DEV PINS\n");
		return 2;
	}
	if (mkdir(argv[2], 0700) && errno != EEXIST)
		die(argv[2], NULL);
	rc = live(argv[1], argv[2]);
	rmdir(argv[2]);
	return rc;
}
