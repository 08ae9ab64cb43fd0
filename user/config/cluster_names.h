/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cluster_names.h - names and defaults of the `cluster:` section, for reading and writing. */
#ifndef SLUICE_CLUSTER_NAMES_H
#define SLUICE_CLUSTER_NAMES_H

#include "config/cluster_def.h"
#include "config/model.h"
#include "config/write.h"

#define CLUSTER_NODE_CHARACTERS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define CLUSTER_MASTER_DEFAULT "mymaster"
#define CLUSTER_PREFIX_DEFAULT "sluice:"
#define CLUSTER_SYNC_DEFAULT_MS 100
#define CLUSTER_DEADLINE_DEFAULT_MS 5

extern const struct name redis_mode_names[];

/* This host's name, reduced to the characters of a node's name. */
void cluster_host_node(char ret[CLUSTER_NODE_MAX + 1]);

/* The section as read_cluster() reads it back; write_cluster.c. */
void write_cluster(struct writer *w, const struct cluster_def *cluster);

#endif
