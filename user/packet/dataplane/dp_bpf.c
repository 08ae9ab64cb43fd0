/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bpf.c - the kernel's data plane: pinned maps, and the program over them.
 *
 * The maps are made once, pinned, and opened by every later daemon; memory-mapped if the kernel
 * allows it, so reading a bucket state or the clock offset is no system call. The program is loaded
 * once per interface (its slot is a constant in it) over the same maps. dp_attach.c attaches it to
 * interfaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "lib/cpus.h"
#include "packet/dataplane/dp_attach.h"
#include "packet/dataplane/dp_bpf.h"
#include "bpf/sluice.skel.h" /* uses types of ours */

static struct dp_bpf *to_bpf(struct dp *dp)
{
	return (struct dp_bpf *)dp;
}

/* ------------------------------------------------------------------ the object */

/*
 * The program uses the kernel's CONFIG_HZ. libbpf would read a configuration file, which a
 * container or a virtual machine need not have; the resolution of the coarse clocks is one tick,
 * which is the same value.
 */
static struct sluice_bpf *open_object(struct sl_err *err)
{
	struct timespec tick = { .tv_nsec = 10000000 };
	char kconfig[32];
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kconfig = kconfig);
	struct sluice_bpf *skel;

	bpf_listen();
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	snprintf(kconfig, sizeof(kconfig), "CONFIG_HZ=%ld\n",
		 (1000000000 + tick.tv_nsec / 2) / tick.tv_nsec);
	skel = sluice_bpf__open_opts(&opts);
	if (!skel)
		sl_err_set(err, errno, "cannot open the program's object: %s", bpf_said());
	return skel;
}

/* ------------------------------------------------------------------ making and finding maps */

/* Makes or opens all maps of the object; the program is not loaded. */
static int open_maps(struct dp_bpf *b, u64 sets, struct sl_err *err)
{
	struct sluice_bpf *skel = b->skel;
	char path[PATH_MAX];
	struct bpf_map *map;
	int rc;

	bpf_map__set_max_entries(skel->maps.table, sets);
	bpf_program__set_autoload(skel->progs.sluice, false);
	bpf_program__set_autoload(skel->progs.sluice_account, false);
	bpf_object__for_each_map(map, skel->obj) {
		if (bpf_map__is_internal(map) || map == skel->maps.packet_now)
			continue;
		rc = bpf_map__set_pin_path(map, pin_path(b->pin_dir, bpf_map__name(map), path));
		if (rc < 0)
			return sl_err_set(err, -rc, "cannot pin %s", path);
	}
	rc = sluice_bpf__load(skel);
	if (rc < 0)
		return sl_err_set(err, -rc, "cannot make the maps under %s: %s: %s%s", b->pin_dir,
				  strerror(-rc), bpf_said(), bpf_advice(rc));
	return 0;
}

static void *map_whole(const struct bpf_map *map)
{
	return map_memory(bpf_map__fd(map), bpf_map__value_size(map), bpf_map__max_entries(map),
			  PROT_READ | PROT_WRITE);
}

static int map_all_memory(struct dp_bpf *b, struct sl_err *err)
{
	b->dp.state = map_whole(b->skel->maps.state);
	b->dp.epoch = map_whole(b->skel->maps.epoch);
	b->dp.slots = map_whole(b->skel->maps.slots);
	b->dp.table = map_whole(b->skel->maps.table);
	b->dp.ban_filter = map_whole(b->skel->maps.ban_filter);
	b->dp.list_filter = map_whole(b->skel->maps.list_filter);
	b->dp.push_now = map_whole(b->skel->maps.push_now);
	b->dp.established = map_whole(b->skel->maps.established);
	b->dp.elastic = map_whole(b->skel->maps.elastic);
	b->dp.shadow_seen = map_whole(b->skel->maps.shadow_seen);
	b->dp.event_switch = map_whole(b->skel->maps.event_switch);
	b->test_clock = map_whole(b->skel->maps.test_clock);
	if (!b->dp.state || !b->dp.epoch || !b->dp.slots || !b->dp.table || !b->test_clock ||
	    !b->dp.ban_filter || !b->dp.elastic || !b->dp.shadow_seen || !b->dp.push_now ||
	    !b->dp.established || !b->dp.list_filter || !b->dp.event_switch)
		return sl_err_set(err, errno, "cannot map the pinned maps: %s", strerror(errno));
	return 0;
}

/* The version is written last: a state without one was never finished, and is made again. */
static int init_state(struct dp_bpf *b, struct sl_err *err)
{
	if (b->dp.state->abi_version)
		return 0;
	if (getrandom(&b->dp.state->seed, sizeof(b->dp.state->seed), 0) !=
	    sizeof(b->dp.state->seed))
		return sl_err_set(err, EIO, "no random numbers for the table's seed");
	b->dp.state->table_sets = b->dp.table_sets;
	__atomic_store_n(&b->dp.state->abi_version, SL_ABI_VERSION, __ATOMIC_RELEASE);
	return 0;
}

/* ------------------------------------------------------------------ the small operations */

struct sl_test_clock *dp_bpf_test_clock(struct dp *dp)
{
	return to_bpf(dp)->test_clock;
}

/* This is no use of the entry for the kernel: the LRU order stays. */
static int dp_bpf_lease(struct dp *dp, u64 key, u64 *ret)
{
	struct dp_bpf *b = to_bpf(dp);
	struct sl_lease_hints *hints = calloc(b->dp.cpus, sizeof(*hints));
	u32 zero = 0;
	int rc = 0;

	if (!hints)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.lease), &key, ret) < 0) {
		rc = errno == ENOENT ? 0 : -errno;
		memset(ret, 0, b->dp.cpus * sizeof(*ret));
	}
	if (bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.lease_hints), &zero, hints) < 0)
		rc = -errno;
	for (u32 cpu = 0; cpu < b->dp.cpus; cpu++)
		if (hints[cpu].hint[sl_lease_hint_at(key)].key == key)
			ret[cpu] = hints[cpu].hint[sl_lease_hint_at(key)].lease;
	free(hints);
	return rc;
}

static const struct sl_rules *dp_bpf_rules(struct dp *dp)
{
	return to_bpf(dp)->rules;
}

static const struct sl_rules *dp_bpf_fallback(struct dp *dp)
{
	return to_bpf(dp)->fallback;
}

/* ------------------------------------------------------------------ the program */

static int put_stage(int stages_fd, u32 at, const struct bpf_program *prog)
{
	int fd = bpf_program__fd(prog);

	return bpf_map_update_elem(stages_fd, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
}

/*
 * Loads an instance over the maps in place, and puts its parts into its program array. The maps are
 * passed as descriptors, not by pin path, so this works in a daemon that may no longer open the
 * pins.
 */
static int load_instance(struct dp_bpf *b, const struct sl_config *config, int stages_fd,
			 int *ret_fd, struct sl_err *err)
{
	const u32 slot = config->iface_slot, parity = config->parity;
	struct sluice_bpf *skel;
	struct bpf_map *map;
	int fd, rc;

	skel = open_object(err);
	if (!skel)
		return -errno;
	memcpy((void *)&skel->rodata->config, config, sizeof(*config));
	/*
	 * A stub behind libxdp's dispatcher has no expected attach type, and kernels since
	 * 6.17 let a program array hold programs of one attach type only.
	 */
	bpf_program__set_expected_attach_type(skel->progs.sluice, 0);
	bpf_program__set_expected_attach_type(skel->progs.sluice_account, 0);
	bpf_object__for_each_map(map, skel->obj) {
		if (bpf_map__is_internal(map) || map == skel->maps.packet_now)
			continue;
		fd = map == skel->maps.stages
			     ? stages_fd
			     : bpf_object__find_map_fd_by_name(b->skel->obj, bpf_map__name(map));
		rc = bpf_map__reuse_fd(map, fd);
		if (rc < 0)
			goto failed;
	}
	rc = sluice_bpf__load(skel);
	if (!rc)
		rc = put_stage(stages_fd, sl_stage_at(SL_STAGE_ACCOUNT, slot, parity),
			       skel->progs.sluice_account);
	if (!rc)
		rc = put_stage(stages_fd, sl_stage_at(SL_STAGE_AGAIN, slot, parity),
			       skel->progs.sluice);
	if (rc < 0)
		goto failed;
	fd = fcntl(bpf_program__fd(skel->progs.sluice), F_DUPFD_CLOEXEC, 0);
	rc = fd < 0 ? -errno : 0;
	if (rc < 0)
		goto failed;
	*ret_fd = fd;
	sluice_bpf__destroy(skel);
	return 0;
failed:
	sluice_bpf__destroy(skel);
	return sl_err_set(err, -rc, "the kernel does not take the program: %s: %s%s", strerror(-rc),
			  bpf_said(), bpf_advice(rc));
}

/*
 * Its stages are an array of its own: `stages` belongs to the programs behind stubs. It must stay
 * open, because a program array is emptied with its last descriptor or pin.
 */
int dp_bpf_prog(struct dp *dp, u32 slot, u32 flags, int *ret_fd, struct sl_err *err)
{
	struct dp_bpf *b = to_bpf(dp);
	const struct sl_config config = { .iface_slot = slot,
					  .table_sets = b->dp.table_sets,
					  .fake_clock = !!(flags & DP_PROG_FAKE_CLOCK),
					  .no_refusal_cache = !!(flags & DP_PROG_NO_REFUSAL_CACHE),
					  .link = flags & DP_PROG_LINK_IP ? SL_LINK_IP
									  : SL_LINK_ETHERNET };
	int fd, rc, *grown;

	grown = realloc(b->own_stages, (b->own_stages_count + 1) * sizeof(*grown));
	if (!grown)
		return sl_err_set(err, ENOMEM, "out of memory");
	b->own_stages = grown;
	fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "stages", sizeof(u32), sizeof(u32),
			    SL_STAGES_MAX, NULL);
	if (fd < 0)
		return sl_err_set(err, errno, "cannot make the map 'stages': %s", strerror(errno));
	rc = load_instance(b, &config, fd, ret_fd, err);
	if (rc < 0)
		close(fd);
	else
		b->own_stages[b->own_stages_count++] = fd;
	return rc;
}

static u32 program_in(int array_fd, u32 at)
{
	u32 id;

	return bpf_map_lookup_elem(array_fd, &at, &id) < 0 ? 0 : id;
}

/* The one of the slot's two places that the running instance does not use. */
static u32 free_parity(struct dp_bpf *b, u32 slot)
{
	u32 running = program_in(b->progs_fd, slot);
	u32 first =
		program_in(bpf_map__fd(b->skel->maps.stages), sl_stage_at(SL_STAGE_AGAIN, slot, 0));

	return running && running == first;
}

static int load_for_slot(struct dp_bpf *b, u32 slot, int *ret_fd, struct sl_err *err)
{
	struct sl_config config = { .iface_slot = slot,
				    .table_sets = b->dp.table_sets,
				    .parity = free_parity(b, slot),
				    .link = b->link[slot] };

	return load_instance(b, &config, bpf_map__fd(b->skel->maps.stages), ret_fd, err);
}

struct preparation {
	struct dp_bpf *b;
	const u32 *slot;
	u32 count;
	u32 next; /* of `slot`; each thread takes one at a time */
};

static void *prepare_slots(void *arg)
{
	struct preparation *p = arg;
	u32 i;

	while ((i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->count) {
		int *fd = &p->b->prepared[p->slot[i]];

		if (*fd < 0 && load_for_slot(p->b, p->slot[i], fd, NULL) < 0)
			*fd = -1;
	}
	return NULL;
}

void dp_set_link(struct dp *dp, u32 slot, enum sl_link link)
{
	struct dp_bpf *b = to_bpf(dp);

	if (b->link[slot] != link && b->prepared[slot] >= 0) {
		close(b->prepared[slot]);
		b->prepared[slot] = -1;
	}
	b->link[slot] = link;
}

void dp_prepare(struct dp *dp, const u32 *slot, u32 count)
{
	u32 cpus = cpus_online(), started;
	struct preparation p = { .b = to_bpf(dp),
				 .slot = slot,
				 .count = cpus < count ? cpus : count };
	pthread_t thread[SL_IFACES_MAX];

	if (!count || p.b->prepared[slot[0]] >= 0)
		return;
	for (started = 0; started + 1 < p.count; started++)
		if (pthread_create(&thread[started], NULL, prepare_slots, &p) != 0)
			break;
	prepare_slots(&p);
	while (started)
		pthread_join(thread[--started], NULL);
}

void dp_prepare_end(struct dp *dp)
{
	struct dp_bpf *b = to_bpf(dp);

	for (u32 slot = 0; slot < SL_IFACES_MAX; slot++) {
		if (b->prepared[slot] >= 0)
			close(b->prepared[slot]);
		b->prepared[slot] = -1;
	}
}

int dp_install(struct dp *dp, u32 slot, struct sl_err *err)
{
	struct dp_bpf *b = to_bpf(dp);
	struct sl_attached record;
	int fd, rc = 0;

	if (slot >= SL_IFACES_MAX)
		return sl_err_set(err, EINVAL, "interface slot %u of %u", slot, SL_IFACES_MAX);
	fd = b->prepared[slot];
	b->prepared[slot] = -1;
	if (fd < 0)
		rc = load_for_slot(b, slot, &fd, err);
	if (rc < 0)
		return rc;
	if (bpf_map_lookup_elem(b->attached_fd, &slot, &record) == 0 && !record.ifname[0])
		dp_bpf_iface_stats_clear(dp, slot);
	if (bpf_map_update_elem(b->progs_fd, &slot, &fd, BPF_ANY) < 0)
		rc = sl_err_set(err, errno, "cannot put the program behind its stub: %s",
				strerror(errno));
	close(fd);
	dp_epoch_raise(dp);
	return rc;
}

/* ------------------------------------------------------------------ opening */

static void dp_bpf_close(struct dp *dp)
{
	struct dp_bpf *b = to_bpf(dp);

	if (!b)
		return;
	unmap_memory(b->dp.state, sizeof(*b->dp.state), 1);
	unmap_memory(b->dp.epoch, sizeof(*b->dp.epoch), 1);
	unmap_memory(b->dp.slots, sizeof(*b->dp.slots), SL_LIMIT_IDS);
	unmap_memory(b->dp.table, sizeof(*b->dp.table), b->dp.table_sets);
	unmap_memory(b->test_clock, sizeof(*b->test_clock), 1);
	unmap_memory(b->dp.elastic, sizeof(*b->dp.elastic), SL_LIMIT_IDS);
	unmap_memory(b->dp.shadow_seen, sizeof(*b->dp.shadow_seen), SL_LIMIT_IDS);
	unmap_memory(b->dp.list_filter, sizeof(*b->dp.list_filter), 1);
	unmap_memory(b->dp.ban_filter, sizeof(*b->dp.ban_filter), 1);
	unmap_memory(b->dp.push_now, sizeof(*b->dp.push_now), 1);
	unmap_memory(b->dp.established, sizeof(*b->dp.established), SL_ESTABLISHED_SETS);
	unmap_memory(b->dp.event_switch, sizeof(*b->dp.event_switch), 1);
	ring_buffer__free(b->ring);
	dp_bpf_rules_free(b);
	sluice_bpf__destroy(b->skel);
	dp_prepare_end(dp);
	while (b->own_stages_count)
		close(b->own_stages[--b->own_stages_count]);
	free(b->own_stages);
	if (b->progs_fd >= 0)
		close(b->progs_fd);
	if (b->attached_fd >= 0)
		close(b->attached_fd);
	free(b);
}

static const struct dp_ops dp_bpf_ops = {
	.name = "bpf",
	.close = dp_bpf_close,
	.apply = dp_bpf_apply,
	.apply_until = dp_bpf_apply_until,
	.confirm = dp_bpf_confirm,
	.rules = dp_bpf_rules,
	.fallback = dp_bpf_fallback,
	.iface_stats = dp_bpf_iface_stats,
	.limit_stats = dp_bpf_limit_stats,
	.heavy = dp_bpf_heavy,
	.events = dp_bpf_events,
	.event_stats = dp_bpf_event_stats,
	.global_stats = dp_bpf_global_stats,
	.limit_stats_clear = dp_bpf_limit_stats_clear,
	.lease = dp_bpf_lease,
	.hash_all = dp_bpf_hash_all,
	.hash_get = dp_bpf_hash_get,
	.hash_put = dp_bpf_hash_put,
	.hash_del = dp_bpf_hash_del,
};

static int open_pins(struct dp_bpf *b, u64 table_buckets, enum dp_pins *ret, struct sl_err *err)
{
	struct bpf_map_info info;
	u64 sets = SL_TABLE_SETS(table_buckets);
	bool other;
	int rc;

	b->skel = open_object(err);
	if (!b->skel)
		return -errno;
	rc = pins_take_over(b->skel->obj, b->pin_dir, &other, err);
	if (rc < 0)
		return rc;
	*ret = other ? DP_PINS_REPLACED : DP_PINS_MADE;
	if (pinned_info(b->pin_dir, "table", &info) == 0) {
		sets = info.max_entries; /* a table keeps its size */
		*ret = DP_PINS_FOUND;
	}
	if (!sets || sets > UINT32_MAX)
		return sl_err_set(err, EINVAL, "a table of %llu buckets", table_buckets);
	b->dp.table_sets = sets;
	rc = open_maps(b, sets, err);
	if (rc < 0)
		return rc;
	rc = map_all_memory(b, err);
	if (rc < 0)
		return rc;
	rc = dp_bpf_open_ring(b, err);
	if (rc < 0)
		return rc;
	rc = init_state(b, err);
	if (rc < 0)
		return rc;
	dp_bpf_find_rules(b);
	rc = own_map_make(b->pin_dir, OWN_PROGS, &b->progs_fd, err);
	if (rc < 0)
		return rc;
	rc = own_map_make(b->pin_dir, OWN_ATTACHED, &b->attached_fd, err);
	return rc;
}

bool dp_pins_are_there(struct dp *dp)
{
	struct dp_bpf *b = to_bpf(dp);
	char path[PATH_MAX];

	return access(pin_path(b->pin_dir, "table", path), F_OK) == 0 &&
	       access(pin_path(b->pin_dir, "progs", path), F_OK) == 0 &&
	       access(pin_path(b->pin_dir, "attached", path), F_OK) == 0;
}

static int pin_one(struct dp_bpf *b, const char *name, int fd, struct sl_err *err)
{
	char path[PATH_MAX];

	if (bpf_obj_pin(fd, pin_path(b->pin_dir, name, path)) < 0 && errno != EEXIST)
		return sl_err_set(err, errno, "cannot pin %s: %s", path, strerror(errno));
	return 0;
}

/* `table` last: dp_pins_are_there() looks for it. */
int dp_pin_again(struct dp *dp, struct sl_err *err)
{
	struct dp_bpf *b = to_bpf(dp);
	struct bpf_map *map;
	bool made;
	int rc = pin_dir_make(b->pin_dir, &made, err);

	if (!rc)
		rc = pin_one(b, "progs", b->progs_fd, err);
	if (!rc)
		rc = pin_one(b, "attached", b->attached_fd, err);
	bpf_object__for_each_map(map, b->skel->obj) {
		if (rc < 0 || bpf_map__is_internal(map) || map == b->skel->maps.packet_now ||
		    map == b->skel->maps.table)
			continue;
		rc = pin_one(b, bpf_map__name(map), bpf_map__fd(map), err);
	}
	return rc < 0 ? rc : pin_one(b, "table", bpf_map__fd(b->skel->maps.table), err);
}

int dp_bpf_open(const char *pin_dir, u64 table_buckets, struct dp **ret, enum dp_pins *ret_pins,
		struct sl_err *err)
{
	enum dp_pins pins = DP_PINS_MADE;
	struct dp_bpf *b;
	bool made = false;
	int rc, cpus;

	bpf_listen();
	b = calloc(1, sizeof(*b));
	if (!b)
		return sl_err_set(err, ENOMEM, "out of memory");
	b->dp.ops = &dp_bpf_ops;
	b->progs_fd = b->attached_fd = -1;
	memset(b->prepared, -1, sizeof(b->prepared));
	cpus = libbpf_num_possible_cpus();
	b->dp.cpus = cpus;
	snprintf(b->pin_dir, sizeof(b->pin_dir), "%s", pin_dir);
	rc = cpus < 1 ? sl_err_set(err, EIO, "cannot get the number of possible CPUs")
		      : pin_dir_make(b->pin_dir, &made, err);
	if (!rc)
		rc = open_pins(b, table_buckets, &pins, err);
	if (rc < 0) {
		dp_bpf_close(&b->dp);
		if (made)
			unpin_all(pin_dir, NULL);
		return rc;
	}
	*ret = &b->dp;
	if (ret_pins)
		*ret_pins = pins;
	return 0;
}
