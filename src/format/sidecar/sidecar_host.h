/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a sidecar file about the host: TCP traffic, network cards, pressure, GPUs. Times are
 * CLOCK_MONOTONIC; see sidecar_file.h.
 */
#pragma once

#include "base/base.h"

/* Totals of the window's TCP traffic: one record, or none if it was not sampled. */
struct sidecar_network {
	double peak_bytes_per_sec; /* highest rate of one worker of this host between two samples */
	uint64_t host_tx_bytes;	   /* TCP bytes all followed workers of this host sent */
	char why[112];		   /* why there are no socket samples; "" if there are */
};

/* TCP payload of the worker, cumulative from an arbitrary start. */
struct sidecar_socket {
	int64_t time_ns;
	uint64_t tx_bytes, rx_bytes;
};

enum sidecar_nic_flag {
	SIDECAR_NIC_RDMA = 1, /* a port of /sys/class/infiniband */
};

struct sidecar_nic {
	double bytes_per_sec; /* of the link, one direction; 0: unknown */
	uint32_t flags;	      /* enum sidecar_nic_flag */
	char name[28];	      /* "eth0", "mlx5_0/1"; NUL-terminated */
};

/* Cumulative counters of one network card of the host. */
struct sidecar_nic_sample {
	int64_t time_ns;
	uint64_t tx_bytes, rx_bytes;
	uint32_t nic; /* index in nics */
	uint32_t reserved;
};

/*
 * Counters of trouble at an RDMA port. X(id, file, folder, meaning); append-only. The unit of
 * port_xmit_wait is the card's tick, of undocumented length.
 */
#define SIDECAR_NIC_COUNTER_LIST(X)                                                               \
	X(XMIT_WAIT, "port_xmit_wait", "counters", "ticks with data to send and no credit")       \
	X(XMIT_DISCARDS, "port_xmit_discards", "counters", "packets that could not be sent")      \
	X(RCV_ERRORS, "port_rcv_errors", "counters", "packets received with errors")              \
	X(LINK_DOWNED, "link_downed", "counters", "times the link went down")                     \
	X(SYMBOL_ERROR, "symbol_error", "counters", "errors on the physical link")                \
	X(OUT_OF_SEQUENCE, "out_of_sequence", "hw_counters", "packets out of sequence")           \
	X(PACKET_SEQ_ERR, "packet_seq_err", "hw_counters", "packets that the peer missed")        \
	X(ACK_TIMEOUT, "local_ack_timeout_err", "hw_counters", "acknowledgements that came late") \
	X(RNR_NAK, "rnr_nak_retry_err", "hw_counters", "retries: the peer was not ready")         \
	X(CNP_SENT, "np_cnp_sent", "hw_counters", "congestion notifications sent")                \
	X(CNP_HANDLED, "rp_cnp_handled", "hw_counters", "congestion notifications handled")       \
	X(ADP_RETRANS, "roce_adp_retrans", "hw_counters", "adaptive retransmissions")

enum sidecar_nic_counter {
#define X(id, file, folder, help) SIDECAR_NIC_##id,
	SIDECAR_NIC_COUNTER_LIST(X)
#undef X
		SIDECAR_NIC_COUNTER_CNT
};

/* A counter of a card that grew while workers of the host were in a window. */
struct sidecar_nic_count {
	uint32_t nic;	  /* index in nics */
	uint32_t counter; /* enum sidecar_nic_counter; others are a later version's */
	uint64_t grown;
};

#define SIDECAR_PRESSURE_UNKNOWN UINT64_MAX

/* Cumulative time at least one task of the host stalled for a resource. */
struct sidecar_pressure {
	int64_t time_ns;
	uint64_t some_us[3]; /* cpu, io, memory; SIDECAR_PRESSURE_UNKNOWN: not reported */
};

enum sidecar_gpu_flag {
	SIDECAR_GPU_BY_RANK = 1, /* assigned to the worker by its local rank: not seen using it */
	SIDECAR_GPU_LOST = 2,	 /* it no longer answers */
};

#define SIDECAR_GPU_NONE UINT32_MAX
#define SIDECAR_GPUS_MAX 16u /* of one worker; readers ignore further ones */

/* A GPU of the worker, or one record that says why none is sampled. */
struct sidecar_gpu {
	uint32_t index; /* the driver's index; SIDECAR_GPU_NONE: none is sampled */
	uint32_t flags; /* enum sidecar_gpu_flag */
	/* Maxima of the device; 0: unknown. Links: one direction, sum of all. */
	double core_hz, pcie_bytes_per_sec, link_bytes_per_sec;
	char name[40];
	char why[56]; /* why some samples are absent; "" if none is */
};

/* The identity of a GPU, independent of its index: drivers in containers count their own. */
struct sidecar_gpu_id {
	uint32_t gpu, reserved; /* gpu: index in gpus */
	char uuid[40];		/* hexadecimal digits in five groups; NUL-terminated */
};

/* One value. model/gpumetric.h defines its meaning. */
struct sidecar_gpu_sample {
	int64_t time_ns;
	double value;
	uint32_t gpu;	 /* index in gpus */
	uint32_t metric; /* enum gpu_metric; may be an unknown one of a newer writer */
};

_Static_assert(sizeof(struct sidecar_network) == 128, "on disk");
_Static_assert(sizeof(struct sidecar_socket) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_nic) == 40, "on disk");
_Static_assert(sizeof(struct sidecar_nic_sample) == 32, "on disk");
_Static_assert(sizeof(struct sidecar_nic_count) == 16, "on disk");
_Static_assert(sizeof(struct sidecar_pressure) == 32, "on disk");
_Static_assert(sizeof(struct sidecar_gpu) == 128 && sizeof(struct sidecar_gpu_id) == 48, "on disk");
_Static_assert(sizeof(struct sidecar_gpu_sample) == 24, "on disk");
