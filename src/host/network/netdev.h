/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte counters of the network cards of this host: RDMA ports from /sys/class/infiniband, whose
 * traffic the kernel's network stack never sees, and network devices from /sys/class/net. Virtual
 * devices (lo, veth, bridges) are left out: they have no wire of their own that could be a
 * bottleneck, and their traffic over a wire is counted at that device.
 *
 * Descriptors stay open, a look is one pread a counter. Some firmware takes long
 * to answer, so the time between two looks grows with their cost to at most 1 %.
 * Source: Documentation/ABI/stable/sysfs-class-infiniband and
 * testing/sysfs-class-net-statistics.
 */
#pragma once

#include "base/vec.h"
#include "format/sidecar/sidecar.h"

#define NETDEV_MAX 32u			   /* more are left out */
#define NETDEV_LOOK_NS (8 * NSEC_PER_MSEC) /* called every 10 ms: one call late, not two */
#define NETDEV_COST_DIVISOR 100

struct netdev {
	struct sidecar_nic nic; /* name and rate as the sidecar has them */
	int tx_fd, rx_fd;
	uint32_t unit_bytes; /* of one count: RDMA ports count words of 4 bytes */
	uint64_t tx_bytes, rx_bytes;
};

struct netdevs {
	VEC(struct netdev) devices;
	int64_t look_ns, due_ns;
};

/*
 * Finds the devices below root ("" on a machine, a fixture tree in tests). A
 * device that can't be read is left out. Returns 0 or -ENOMEM; *devs may be
 * closed in any case.
 */
_must_check_ int netdevs_open(struct netdevs *devs, const char *root);
void netdevs_close(struct netdevs *devs);

/* Reads all counters when it is time. Returns 1 after a look, else 0. */
int netdevs_look(struct netdevs *devs, int64_t (*clock)(void));

/* Appends the counters of the last look to out->nic_samples. Returns 0 or -ENOMEM. */
_must_check_ int netdevs_record(const struct netdevs *devs, struct sidecar *out);

/*
 * Bytes a second of "400 Gb/sec (4X NDR)" (an RDMA port's rate) or "10000"
 * (a network device's speed in Mbit/s; -1 when it knows none). 0: unknown.
 */
double netdev_parse_rate(const char *text);
double netdev_parse_speed(const char *text);
