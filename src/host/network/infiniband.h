/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error and congestion counters of this host's RDMA ports (InfiniBand, RoCE, EFA): time that a port
 * had data and no credit to send it, packets lost and retransmitted, congestion marks. netdev.h has
 * the bytes. The set of counters depends on the card; missing ones are not reported.
 *
 * Counters of hw_counters/ are copies that the kernel refreshes after a lifespan, given in a file
 * beside them; those of counters/ query the card at each read. They change by little, so they are
 * read at the start, at most ten times a second, and at the end.
 * Source: Documentation/ABI/stable/sysfs-class-infiniband; ib_verbs.h
 * (RDMA_HW_STATS_DEFAULT_LIFESPAN); Mellanox' list of mlx5 counters.
 */
#pragma once

#include "base/vec.h"
#include "format/sidecar/sidecar.h"

#define IB_PORT_MAX 32u			    /* more are left out */
#define IB_LOOK_NS (100 * NSEC_PER_MSEC)    /* between two looks at least */
#define IB_LIFESPAN_NS (10 * NSEC_PER_MSEC) /* where the kernel has no value */
#define IB_COST_DIVISOR 1000

struct ib_counter {
	enum sidecar_nic_counter id;
	int fd;
	uint64_t last, grown; /* what a reset took away between two looks is not in it */
};

struct ib_port {
	char name[28];	     /* "mlx5_0/1", as netdev.h has it */
	int64_t lifespan_ns; /* of hw_counters; a look doesn't come sooner */
	size_t counter_cnt;
	struct ib_counter counters[SIDECAR_NIC_COUNTER_CNT];
};

struct ibports {
	VEC(struct ib_port) ports;
	int64_t due_ns;
};

/*
 * Finds the ports below root ("" on a machine, a fixture tree in tests) and reads all
 * counters for the first time. Returns 0 or -ENOMEM; *ib may be closed in any case.
 */
_must_check_ int ibports_open(struct ibports *ib, const char *root);
void ibports_close(struct ibports *ib);

/* Reads all counters when it is time, or now. Returns 1 after a look, else 0. */
int ibports_look(struct ibports *ib, int64_t (*clock)(void));
void ibports_look_now(struct ibports *ib);

/*
 * Appends to out->nic_counters the growth of counters since they were opened, for the ports in
 * out->nics; unchanged ones are left out. Returns 0 or -ENOMEM.
 */
_must_check_ int ibports_record(const struct ibports *ib, struct sidecar *out);
