// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor_nic.c - see doctor.h: each interface: driver, queues, offloads, MTU, other programs. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/links.h"
#include "lib/units.h"

/* A frame of one page less the headroom of XDP and the kernel's shared info: 4096 - 256 - 320. */
#define MTU_ONE_PAGE 3498

static bool absent(const struct doctor *d)
{
	return if_nametoindex(d->ifname) == 0;
}

static int ethtool(const char *ifname, void *command)
{
	struct ifreq request = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	request.ifr_data = command;
	r = ioctl(fd, SIOCETHTOOL, &request) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* ETHTOOL_GGRO, ETHTOOL_GFLAGS...: 0 where the driver does not say. */
static u32 ethtool_value(const char *ifname, u32 command)
{
	struct ethtool_value value = { .cmd = command };

	return ethtool(ifname, &value) < 0 ? 0 : value.data;
}

/* ------------------------------------------------------------------ what is attached */

static int link_of(const char *ifname, struct link *ret)
{
	return link_get(if_nametoindex(ifname), true, ret);
}

/* tun, WireGuard, PPP, tunnels: the kernel has only generic XDP for them. */
static bool has_no_ethernet(const struct doctor *d)
{
	struct link link;

	return link_of(d->ifname, &link) == 0 && link.type != ARPHRD_ETHER &&
	       link.type != ARPHRD_LOOPBACK;
}

static void attached(struct doctor *d)
{
	const char *state = text_of(d->iface, "state");
	char mend[96];

	snprintf(mend, sizeof(mend), "sluicectl %s %s",
		 strcmp(state, "moved") ? "attach" : "detach", d->ifname);
	if (!strcmp(state, "moved"))
		doctor_found(d, LEVEL_WARN, mend,
			     "moved to another network namespace: its limits hold there");
	else if (absent(d))
		doctor_found(
			d, LEVEL_WARN,
			"ip link shows the interfaces; correct interfaces: in the configuration",
			"there is no such interface here; it is attached when it appears");
	else if (!d->iface)
		doctor_found(d, LEVEL_UNKNOWN, NULL, "the daemon does not say");
	else if (!strcmp(state, "native"))
		doctor_found(d, LEVEL_OK, NULL, "in native mode");
	else if (!strcmp(state, "generic") && has_no_ethernet(d))
		doctor_found(d, LEVEL_OK, NULL,
			     "in generic mode, the only one without an Ethernet header");
	else if (!strcmp(state, "generic"))
		doctor_found(d, LEVEL_WARN,
			     "a driver with native XDP; or mode: native, to see why it is refused",
			     "in generic mode");
	else
		doctor_found(d, LEVEL_BAD, mend, "NOT LIMITED: %s%s%s", state,
			     text_of(d->iface, "error")[0] ? ": " : "", text_of(d->iface, "error"));
}

static void other_programs(struct doctor *d)
{
	const char *state = text_of(d->iface, "state");
	bool ours = !strcmp(state, "native") || !strcmp(state, "generic");
	char mend[96];
	struct link link;

	if (absent(d))
		return;
	if (link_of(d->ifname, &link) < 0) {
		doctor_found(d, LEVEL_UNKNOWN, NULL, "rtnetlink does not say");
	} else if (ours && number_of(d->iface, "other_programs")) {
		doctor_found(d, LEVEL_OK, NULL, "%lld, beside sluice behind libxdp's dispatcher",
			     number_of(d->iface, "other_programs"));
	} else if (ours) {
		doctor_found(d, LEVEL_OK, NULL, "none");
	} else if (link.xdp_mode != XDP_ATTACHED_NONE) {
		snprintf(mend, sizeof(mend),
			 "ip link set dev %s xdp off    (removes the other program)", d->ifname);
		doctor_found(d, LEVEL_WARN, mend,
			     "a program is attached (id %u), and the daemon does not call it "
			     "its own",
			     link.xdp_prog);
	} else {
		doctor_found(d, LEVEL_OK, NULL, "none");
	}
}

/* As the file has them, on this host. */
static void limits_of_link(struct doctor *d)
{
	const json_t *note;
	size_t i;

	json_array_foreach(json_object_get(d->config, "link_notes"), i, note)
		if (!strcmp(text_of(note, "name"), d->ifname))
			doctor_found(d, LEVEL_WARN,
				     "correct interfaces: or match: in the configuration", "%s",
				     text_of(note, "note"));
}

/* Says nothing of an interface where nothing marks packets. */
static void marks(struct doctor *d)
{
	const char *reader = text_of(d->iface, "mark_reader");
	char mend[96];

	snprintf(mend, sizeof(mend), "sluicectl attach %s", d->ifname);
	if (!strcmp(reader, "lost"))
		doctor_found(d, LEVEL_BAD, mend,
			     "LOST: the program at tc ingress that sets them is not attached");
	else if (!strcmp(reader, "attached"))
		doctor_found(d, LEVEL_OK, NULL,
			     "the program at tc ingress that sets them is attached");
}

/* ------------------------------------------------------------------ driver and queues */

/* Of Linux 6.12: drivers with ndo_bpf for XDP_SETUP_PROG. */
static const char native_drivers[] =
	" amazon_ena aquantia atlantic bnxt_en bonding cpsw cpsw-switch dpaa dpaa2-eth ena enetc fec fsl_dpa "
	"fsl_dpaa2_eth fsl_enetc gve hns3 hv_netvsc i40e iavf ice idpf igb igc ionic ixgbe ixgbevf lan966x-switch "
	"mana mlx4_en mlx5_core mt7530 mtk_soc_eth mvneta mvpp2 netsec netvsc nfp nicvf octeontx2-nicpf qede "
	"rvu_nicpf rvu_nicvf sfc siena st_gmac stmmac thunder-nic tsnep tun veth virtio_net vmxnet3 xen-netfront "
	"xen_netfront ";

static void driver(struct doctor *d)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	char word[40];

	if (absent(d))
		return;
	if (ethtool(d->ifname, &info) < 0) {
		doctor_found(d, LEVEL_UNKNOWN, NULL,
			     "it does not say: a virtual interface without ethtool");
		return;
	}
	snprintf(word, sizeof(word), " %.32s ", info.driver);
	if (has_no_ethernet(d))
		doctor_found(d, LEVEL_OK, NULL,
			     "%.32s, without an Ethernet header, and so without native XDP",
			     info.driver);
	else if (strstr(native_drivers, word))
		doctor_found(d, LEVEL_OK, NULL, "%.32s, which has native XDP", info.driver);
	else
		doctor_found(d, LEVEL_WARN,
			     "mode: generic works; for millions of packets a second another card",
			     "%.32s is not known to have native XDP", info.driver);
}

static void queues(struct doctor *d)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	long cpus = doctor_cpus(), count, most;
	char mend[96];

	if (absent(d))
		return;
	if (ethtool(d->ifname, &channels) < 0) {
		doctor_found(d, LEVEL_UNKNOWN, NULL, "the driver does not say how many it has");
		return;
	}
	count = (long)channels.rx_count + channels.combined_count;
	most = channels.max_combined > channels.max_rx ? channels.max_combined : channels.max_rx;
	if (most > cpus)
		most = cpus;
	snprintf(mend, sizeof(mend), "ethtool -L %s %s %ld", d->ifname,
		 channels.max_combined ? "combined" : "rx", most);
	doctor_found(d, count < most ? LEVEL_WARN : LEVEL_OK, mend,
		     "%ld receive queue%s for %ld CPUs", count, count == 1 ? "" : "s", cpus);
}

/* ------------------------------------------------------------------ offloads, MTU, losses */

static void vlan_stripping(struct doctor *d)
{
	bool on = ethtool_value(d->ifname, ETHTOOL_GFLAGS) & ETH_FLAG_RXVLAN;
	char mend[96];

	if (absent(d))
		return;
	snprintf(mend, sizeof(mend), "ethtool -K %s rxvlan off", d->ifname);
	if (!on)
		doctor_found(d, LEVEL_OK, NULL, "off");
	else if (d->iface && number_of(d->iface, "ifindex"))
		doctor_found(d, LEVEL_BAD, mend, "on, though sluice switched it off");
	else
		doctor_found(d, LEVEL_OK, NULL, "on; sluice switches it off while it is attached");
}

/*
 * Who may send frames of up to 64 KB there, and in `mend` what ends it; NULL: nobody. The
 * interface's own GRO does not: it comes after native XDP, and the kernel leaves it out where there
 * is generic XDP.
 */
static const char *merging_sender(const struct link *link, bool generic, char *mend, size_t size)
{
	static const char command[] = "ethtool -K %s tso off tx-udp-segmentation off";
	char peer[IF_NAMESIZE] = "PEER";

	mend[0] = '\0';
	if (!strcmp(link->kind, "tun")) {
		snprintf(mend, size, command, "eth0");
		snprintf(mend + strlen(mend), size - strlen(mend), ", in the guest");
		return "the guest or program at its other end may use TSO";
	}
	/* Native XDP on a veth switches its peer's TSO off. A peer in another namespace cannot be
	 * looked at. */
	if (!generic || !strcmp(link->kind, "wireguard"))
		return NULL;
	if (!strcmp(link->kind, "veth")) {
		if (link->link && if_indextoname(link->link, peer) &&
		    !ethtool_value(peer, ETHTOOL_GTSO))
			return NULL;
		snprintf(mend, size, command, peer);
		return link->link ? "its peer uses TSO"
				  : "its peer, in another network namespace, may use TSO";
	}
	if (link->type == ARPHRD_LOOPBACK) {
		snprintf(mend, size, command, link->name);
		return "this host uses TSO there";
	}
	return link->kind[0] ? "GRO of an interface below merges, or a sender uses TSO" : NULL;
}

static void merging(struct doctor *d)
{
	bool lro = ethtool_value(d->ifname, ETHTOOL_GFLAGS) & ETH_FLAG_LRO;
	bool generic = !strcmp(text_of(d->iface, "state"), "generic");
	char mend[96], action[160];
	const char *sender;
	struct link link;

	if (absent(d) || link_of(d->ifname, &link) < 0)
		return;
	snprintf(mend, sizeof(mend), "ethtool -K %s lro off", d->ifname);
	if (lro) {
		doctor_found(d, LEVEL_WARN, mend,
			     "LRO is on: drivers refuse native XDP with it, or merge packets "
			     "before they are counted");
		return;
	}
	sender = merging_sender(&link, generic, mend, sizeof(mend));
	snprintf(action, sizeof(action), "limit bytes there%s%s", mend[0] ? "; or: " : "", mend);
	if (sender)
		doctor_found(d, LEVEL_WARN, action,
			     "%s: a frame of up to 64 KB counts as one packet, its bytes in full",
			     sender);
	else
		doctor_found(d, LEVEL_OK, NULL, "frames are not merged before XDP");
}

static void mtu(struct doctor *d)
{
	struct link link;
	char mend[96];

	if (absent(d) || link_of(d->ifname, &link) < 0)
		return;
	snprintf(mend, sizeof(mend), "ip link set dev %s mtu %d", d->ifname, MTU_ONE_PAGE);
	doctor_found(d,
		     link.mtu > MTU_ONE_PAGE && strcmp(text_of(d->iface, "state"), "native") != 0 &&
				     strcmp(d->ifname, "lo") != 0
			     ? LEVEL_WARN
			     : LEVEL_OK,
		     mend, "%u%s", link.mtu,
		     link.mtu > MTU_ONE_PAGE ? ", frames of several buffers" : "");
}

static void losses(struct doctor *d)
{
	struct link link;
	char mend[96];

	if (absent(d) || link_of(d->ifname, &link) < 0)
		return;
	snprintf(mend, sizeof(mend),
		 "ethtool -g %s shows the rings, ethtool -G %s rx N enlarges them", d->ifname,
		 d->ifname);
	doctor_found(d, link.lost ? LEVEL_WARN : LEVEL_OK, mend,
		     "%llu frames lost by the card before XDP", link.lost);
}

const struct check doctor_nic_checks[] = {
	{ "attached",
	  "Packets of an interface without the program meet no limit; generic mode costs several times "
	  "the time for each packet.",
	  attached },
	{ "other programs", "Two XDP programs share an interface only behind libxdp's dispatcher.",
	  other_programs },
	{ "limits",
	  "A limit counts a packet on each interface where it sees it, and as it is there.",
	  limits_of_link },
	{ "marks",
	  "A tag's mark reaches nft and tc only through a second program of sluice, at tc ingress.",
	  marks },
	{ "driver",
	  "Only with native XDP a packet is dropped before the kernel allocates memory for it.",
	  driver },
	{ "queues",
	  "The CPUs of the receive queues share the work: with one queue, one CPU drops a flood.",
	  queues },
	{ "VLAN stripping", "A card that takes the tag off hides it from match: vlan.",
	  vlan_stripping },
	{ "LRO, GRO", "What was merged before XDP, or not yet cut, counts as one packet.",
	  merging },
	{ "MTU", "Many drivers refuse native XDP where a frame does not fit one page.", mtu },
	{ "losses", "What a full ring loses is not counted by any limit.", losses },
	{ 0 }
};
