/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vlan_offload.c - VLAN tag stripping through the ethtool ioctl.
 *
 * Features have names, and their numbers differ between kernels: the names are looked up
 * first. The older ETHTOOL_SFLAGS would be shorter, but has no bit for 802.1ad.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/dataplane/vlan_offload.h"

#define FEATURES_MAX 512
#define BLOCKS_MAX (FEATURES_MAX / 32)
#define OFFLOADS 2

static const char *const offload_name[OFFLOADS] = {
	/* by bit of enum vlan_offload */
	"rx-vlan-hw-parse",
	"rx-vlan-stag-hw-parse",
};

struct features {
	u32 count;
	int number[OFFLOADS]; /* -1: unknown to this kernel */
};

static int ethtool(int fd, const char *ifname, void *command)
{
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	request.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

static int count_features(int fd, const char *ifname, u32 *ret)
{
	/* The kernel's structures end in arrays without a length: `room` is for them. */
	union {
		struct ethtool_sset_info info;
		char room[sizeof(struct ethtool_sset_info) + sizeof(u32)];
	} ask = { .room = {} };
	int rc;

	ask.info.cmd = ETHTOOL_GSSET_INFO;
	ask.info.sset_mask = 1ULL << ETH_SS_FEATURES;
	rc = ethtool(fd, ifname, &ask);
	if (rc < 0)
		return rc;
	if (!ask.info.sset_mask || ask.info.data[0] > FEATURES_MAX)
		return -EOPNOTSUPP;
	*ret = ask.info.data[0];
	return 0;
}

static int find_features(int fd, const char *ifname, struct features *ret)
{
	struct ethtool_gstrings *names;
	int rc = count_features(fd, ifname, &ret->count);

	if (rc < 0)
		return rc;
	names = calloc(1, sizeof(*names) + (size_t)ret->count * ETH_GSTRING_LEN);
	if (!names)
		return -ENOMEM;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = ret->count;
	rc = ethtool(fd, ifname, names);
	for (int o = 0; o < OFFLOADS && rc == 0; o++) {
		ret->number[o] = -1;
		for (u32 i = 0; i < ret->count; i++)
			if (!strncmp((char *)names->data + i * ETH_GSTRING_LEN, offload_name[o],
				     ETH_GSTRING_LEN))
				ret->number[o] = i;
	}
	free(names);
	return rc;
}

/* A socket for the ioctls, and the numbers of the offloads among the features. */
static int open_features(const char *ifname, struct features *ret)
{
	int rc, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	rc = find_features(fd, ifname, ret);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

int vlan_offload_get(const char *ifname, u32 *ret)
{
	union {
		struct ethtool_gfeatures head;
		char room[sizeof(struct ethtool_gfeatures) +
			  BLOCKS_MAX * sizeof(struct ethtool_get_features_block)];
	} ask = { .room = {} };
	struct features features;
	int rc, fd = open_features(ifname, &features);
	u32 on = 0;

	if (fd < 0)
		return fd;
	ask.head.cmd = ETHTOOL_GFEATURES;
	ask.head.size = (features.count + 31) / 32;
	rc = ethtool(fd, ifname, &ask);
	close(fd);
	if (rc < 0)
		return rc;
	for (int o = 0; o < OFFLOADS; o++) {
		int n = features.number[o];

		if (n >= 0 && ask.head.features[n / 32].active & 1U << n % 32)
			on |= 1U << o;
	}
	*ret = on;
	return 0;
}

int vlan_offload_set(const char *ifname, u32 which, u32 on)
{
	union {
		struct ethtool_sfeatures head;
		char room[sizeof(struct ethtool_sfeatures) +
			  BLOCKS_MAX * sizeof(struct ethtool_set_features_block)];
	} ask = { .room = {} };
	struct features features;
	int rc, fd = open_features(ifname, &features);

	if (fd < 0)
		return fd;
	ask.head.cmd = ETHTOOL_SFEATURES;
	ask.head.size = (features.count + 31) / 32;
	for (int o = 0; o < OFFLOADS; o++) {
		int n = features.number[o];

		if (n < 0 || !(which & 1U << o))
			continue;
		ask.head.features[n / 32].valid |= 1U << n % 32;
		if (on & 1U << o)
			ask.head.features[n / 32].requested |= 1U << n % 32;
	}
	rc = ethtool(fd, ifname, &ask);
	close(fd);
	return rc;
}
