/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dp_bpf.h - shared by dp_bpf*.c and dp_attach.c, private to them.
 *
 * Under pin_dir: every map of bpf/maps.h by its name (one is `stages`, through which an instance
 * jumps between its parts), the array `progs` that the stubs jump through, the array `attached`,
 * which records the program of each interface, `mark_reader_SLOT` (dp_attach_mark.c), `rules_now`,
 * the rule set in force (`rules_next` while one is being applied), and `rules_back`, its fallback
 * (`rules_back_next`).
 */
#ifndef SLUICE_DP_BPF_H
#define SLUICE_DP_BPF_H

#include <limits.h>

#include "packet/dataplane/dataplane.h"

#define PIN_DIR_MAX (PATH_MAX - 64)

struct sluice_bpf;
struct ring_buffer;

/* The arrays of a prefix slot. */
enum pfx_array {
	PFX_V4_TOP,
	PFX_V4_LINE,
	PFX_BUCKET,
	PFX_OVERRIDES,
	PFX_CLASS,
	PFX_ARRAYS,
};

/* One that this daemon put into its outer map, mapped for writing; memory NULL: none. */
struct pfx_memory {
	void *memory;
	size_t value_size;
	u32 entries;
	u64 content; /* as pfx_source has it, of what was written */
};

/* A map for a rule set, mapped for writing; memory NULL: none. */
struct rules_map {
	struct sl_rules *memory;
	int fd;
};

struct dp_bpf {
	struct dp dp;
	char pin_dir[PIN_DIR_MAX];
	struct sluice_bpf *skel; /* holds the maps; its program is never loaded */
	int progs_fd;
	/* of dp_prepare(): loaded, for the next dp_install(); -1: none */
	int prepared[SL_IFACES_MAX];
	u8 link[SL_IFACES_MAX]; /* enum sl_link: of dp_set_link() */
	int *own_stages;	/* of the instances that dp_bpf_prog() loaded */
	u32 own_stages_count;
	int attached_fd;
	struct sl_test_clock *test_clock;
	struct ring_buffer *ring;
	dp_event_fn *event_each; /* during dp_bpf_events() */
	void *event_arg;
	struct sl_rules *rules;	   /* mapped from the pin rules_now, or NULL */
	int rules_fd;		   /* its map, where this daemon made it; or -1 */
	struct rules_map spare;	   /* of rules that were in force before, for the next ones */
	struct sl_rules *fallback; /* from the pin rules_back, or NULL */
	struct pfx_memory pfx[SL_PFX_SLOTS][PFX_ARRAYS];
	u64 pfx_digest;	       /* of the prefix maps in force */
	bool pfx_digest_known; /* not after a restart: then they are built again */
};

/* An array that is not, or not only, opened with the program's object. */
enum own_map {
	OWN_PROGS,
	OWN_ATTACHED,
	OWN_STAGES,
};

/*
 * The value of `attached`, by interface slot. It is written before the stub is attached (with
 * prog_id 0) and again when all is in place: a crash in between leaves a trace.
 */
struct sl_attached {
	char ifname[16]; /* "": the slot is free */
	u32 ifindex;
	u32 prog_id;	   /* the stub's; 0: attaching did not finish */
	u32 mode;	   /* enum attach_mode: MODE_NATIVE or MODE_GENERIC */
	u32 dispatcher;	   /* 1: one of several programs behind libxdp's dispatcher */
	u32 mark_priority; /* of the mark reader as a tc filter; 0: there is none */
	u32 vlan_were_on;  /* enum vlan_offload bits that were on before us */
	u32 others;	   /* programs beside the stub behind the dispatcher, when last looked */
	u32 made_clsact;   /* 1: the clsact qdisc was made for the mark reader */
	u32 pad[4];
};
SL_STATIC_ASSERT(sizeof(struct sl_attached) == 64, "pinned layout");

struct bpf_map;
struct bpf_map_info;

/*
 * dp_bpf_rules.c: the operations of these names, and opening the rules that an earlier daemon left
 * in force.
 */
int dp_bpf_apply(struct dp *dp, const struct sl_image *image, struct sl_err *err);
int dp_bpf_apply_until(struct dp *dp, const struct sl_image *image, u64 revert_at_ns,
		       struct sl_err *err);
int dp_bpf_confirm(struct dp *dp, struct sl_err *err);
void dp_bpf_find_rules(struct dp_bpf *b);
void dp_bpf_rules_free(struct dp_bpf *b);

/* dp_bpf_stats.c: the operations on counters. */
int dp_bpf_iface_stats(struct dp *dp, u32 iface_slot, struct sl_iface_stats *ret);
int dp_bpf_limit_stats(struct dp *dp, u32 slot, struct sl_limit_stats *ret);
int dp_bpf_heavy(struct dp *dp, u32 index, struct sl_heavy_set *ret);
/* Opens the ring of events, and the operations on it. */
int dp_bpf_open_ring(struct dp_bpf *b, struct sl_err *err);
int dp_bpf_events(struct dp *dp, dp_event_fn *each, void *arg);
int dp_bpf_event_stats(struct dp *dp, struct sl_event_stats *ret);
int dp_bpf_global_stats(struct dp *dp, struct sl_global_stats *ret);
int dp_bpf_limit_stats_clear(struct dp *dp, u32 slot);
/* To be called before another interface gets the slot. */
int dp_bpf_iface_stats_clear(struct dp *dp, u32 iface_slot);

/* dp_bpf_hashes.c: the operations on what is listed, on bans and on push-downs. */
int dp_bpf_hash_all(struct dp *dp, enum dp_hash which, void *ret, size_t *ret_count);
int dp_bpf_hash_get(struct dp *dp, enum dp_hash which, const void *key, void *ret);
int dp_bpf_hash_put(struct dp *dp, enum dp_hash which, const void *entries, size_t count);
int dp_bpf_hash_del(struct dp *dp, enum dp_hash which, const void *keys, size_t count);

/* dp_bpf_pins.c, from here on. */

/* Makes the directory itself; -ENODEV with a message if it is not on a BPF file system. */
int pin_dir_make(const char *pin_dir, bool *ret_made, struct sl_err *err);
/*
 * Refuses a pin_dir that is none: not a directory of a BPF file system (-ENOTDIR), or one that
 * others than root can write or replace (-EPERM). -ENOENT if there is none.
 */
int pin_dir_check(const char *pin_dir, struct sl_err *err);
/* Removes all pins, and the directory. */
int unpin_all(const char *pin_dir, struct sl_err *err);
/* pin_dir/name into buf of PATH_MAX bytes; returns buf. */
const char *pin_path(const char *pin_dir, const char *name, char *buf);
/* Opens the pinned map; -ENOENT if it is not pinned, -EPROTO if it has another layout. */
int own_map_open(const char *pin_dir, enum own_map which, int *ret_fd, struct sl_err *err);
/* Opens the pinned map, or makes and pins it. */
int own_map_make(const char *pin_dir, enum own_map which, int *ret_fd, struct sl_err *err);

int map_info(int fd, struct bpf_map_info *ret);
/* A pinned map's info; -ENOENT if there is no such pin. */
int pinned_info(const char *pin_dir, const char *name, struct bpf_map_info *ret);
/*
 * Before maps are opened by their pins: if they are another version's, as a whole or one of them,
 * all pins are removed but those of the arrays that the stubs jump through. The attached programs
 * keep the maps, and limit by them, until dp_install() replaces them. -EPROTO: these arrays are
 * another version's, too.
 */
int pins_take_over(const struct bpf_object *object, const char *pin_dir, bool *ret_other,
		   struct sl_err *err);

/* Maps an array of BPF_F_MMAPABLE; value_size is a multiple of 8. NULL with errno. */
void *map_memory(int fd, size_t value_size, u64 entries, int prot);
void unmap_memory(const void *memory, size_t value_size, u64 entries); /* NULL is fine */

/* Silences libbpf and libxdp from now on; bpf_said() has their messages. */
void bpf_listen(void);
/* The kernel's reason, else their first message since bpf_listen(), on one line; "" if there is
 * none. */
const char *bpf_said(void);
/* The kernel's reason alone; NULL: it gave none. */
const char *kernel_said(void);
/* What mends a refusal of -errno, in parentheses; "": nothing known. */
const char *bpf_advice(int code);

#endif
