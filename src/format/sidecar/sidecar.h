/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's measurements of one worker during one profiled window, in one file beside the
 * worker's trace: CPU time and run-queue delay of its threads, garbage collections, iteration
 * bounds, processes that used its CPUs, its TCP traffic, the host's network cards and pressure.
 *
 * sidecar_file.h defines the bytes; nothing read from a file is trusted.
 * Source: PerfTracker eq. 4 and 5 (mu, sigma); ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "format/sidecar/sidecar_file.h"
#include "model/event.h"
#include "model/place/awaited.h"

/* One sidecar in memory. A zeroed one is empty and valid. */
struct sidecar {
	struct sidecar_header header; /* sidecar_write() fills the sections */
#define X(id, field, type) VEC(type) field;
	SIDECAR_SECTION_LIST(X)
#undef X
};

void sidecar_done(struct sidecar *sidecar);

/*
 * Writes the file atomically (temporary file, then rename; mode 0600). Returns 0 or -errno with a
 * line in err.
 */
_must_check_ int sidecar_write(const struct sidecar *sidecar, const char *path, struct err *err);

/* The same bytes from the start of fd, such as a memory file. Returns 0 or -errno. */
_must_check_ int sidecar_write_fd(const struct sidecar *sidecar, int fd);

/*
 * Parses data[len]. Returns 0, -ENOMEM, or -EINVAL with a line in err that
 * names path; *ret is untouched on failure. The caller frees ret.
 */
_must_check_ int sidecar_parse(const char *path, const void *data, size_t len, struct sidecar *ret,
			       struct err *err);

/* Reads a whole file; errors as sidecar_parse() and those of open(2). */
_must_check_ int sidecar_read(const char *path, struct sidecar *ret, struct err *err);

/*
 * Adds to trace, on its clock:
 * - tracks of RESOURCE_CPU_THREAD and RUN_DELAY per thread, RESOURCE_CPU_PROCESS, and
 *   RESOURCE_NIC_TX or SOCKET_TX;
 * - for its GPUs SM_ACTIVE, DRAM, NVLINK_TX, PCIE_TX and PCIE_RX, where the trace has none;
 * - KIND_GC events on the training thread's lane;
 * - "ProfilerStep#<step>" for each iteration within the trace, if it has no such annotation.
 *
 * Events stay sorted and parents valid.
 *
 * RESOURCE_NIC_TX is added if the host's network cards carried at least half of what its workers
 * sent over TCP (RDMA is on top of that): their bytes / the capacity of their links, over the cards
 * that carried any. Otherwise RESOURCE_SOCKET_TX is added: the worker's own TCP traffic. The
 * capacity of loopback is unknown, so 1.0 is the highest rate that any worker of this host reached
 * between two samples, at least 100 Mbit/s: the same for all workers of the host. A host whose
 * network is slow throughout is visible in NIC_TX, not in SOCKET_TX. With only background traffic
 * neither is added.
 *
 * Returns 0 or -ENOMEM; the trace is valid but may be partly extended then. O(events log added).
 */
_must_check_ int sidecar_apply(const struct sidecar *sidecar, struct trace *trace);

/* As sidecar_read() for an open file; path is for messages. */
_must_check_ int sidecar_read_fd(const char *path, int fd, struct sidecar *ret, struct err *err);

/*
 * A summary of a sidecar's evidence. Thieves are sorted by the CPU time they took from this worker,
 * weighted by how often they ran on its CPU; largest first.
 */
struct sidecar_absence {
	uint32_t gpu; /* the driver's index; SIDECAR_GPU_NONE: no GPU is sampled */
	char why[128];
};

struct sidecar_info {
	int rank;
	uint32_t pid, tid;
	int64_t window_ns;
	bool has_thread;       /* the training thread was sampled at least twice: */
	double cpu_frac;       /* its CPU time / time */
	double run_delay_frac; /* share of time it was runnable without a CPU */
	uint64_t gc_cnt;
	int64_t gc_ns;
	struct sidecar_thief thieves[8];
	size_t thief_cnt;
	double psi_cpu_frac, psi_io_frac, psi_memory_frac; /* of the host ("some"); -1 unknown */
	double gpu_throttled_frac, gpu_clock_frac;	   /* as in struct fp_host */
	struct sidecar_absence absences[SIDECAR_GPUS_MAX]; /* GPUs with absent samples */
	size_t absence_cnt;
	struct sidecar_awaited awaited;	  /* sample_cnt 0: no thread or child was seen at work */
	bool has_sockets;		  /* TCP was sampled at least twice: */
	uint64_t tx_bytes, rx_bytes;	  /* payload between first and last sample */
	const struct sidecar_flow *flows; /* flow_cnt; borrowed from the sidecar */
	size_t flow_cnt;
};

/* Condenses a sidecar. Allocates nothing. */
void sidecar_summarize(const struct sidecar *sidecar, struct sidecar_info *ret);

/* Statistics of the samples of one metric of one GPU. */
struct sidecar_gpu_sum {
	uint64_t cnt;
	double first, last, mean;
};

/* Computed over the samples of gpus[gpu]. Allocates nothing. O(samples). */
void sidecar_sum_gpu(const struct sidecar *sidecar, uint32_t gpu, uint32_t metric,
		     struct sidecar_gpu_sum *ret);

/* "pid 71 (stress --cpu 1) used 0.98 CPU on CPUs 0-1", or "4 processes like pid 71 ...". */
void sidecar_thief_text(const struct sidecar_thief *thief, char *text, size_t size);

#define SIDECAR_AWAITED_TEXT (sizeof(struct sidecar_awaited) + 64)
void sidecar_awaited_text(const struct sidecar_awaited *awaited, char *text, size_t size);
