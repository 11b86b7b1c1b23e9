/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a sidecar file: a fixed header, then sections of fixed-size records, all
 * little-endian. Times are CLOCK_MONOTONIC; one mono/wall pair in the header maps them to the wall
 * clock that traces use. The header ends with section_cnt entries, one per section of the list
 * below: a file with fewer (an older writer's) lacks those sections; additional ones of a newer
 * writer are ignored.
 * Source: wprof's data.h for the shape.
 */
#pragma once

#include "format/sidecar/sidecar_flow.h"
#include "format/sidecar/sidecar_host.h"
#include "format/sidecar/sidecar_thief.h"

#define SIDECAR_MAGIC 0x31435350u /* "PSC1" */
#define SIDECAR_VERSION 1u
#define SIDECAR_MAX_BYTES (256u << 20) /* a 20 s window of 1000 threads is 64 MB */
#define SIDECAR_SUFFIX ".sidecar"      /* beside TRACE: TRACE.sidecar */

/* Sections of the file. Append-only: X(id, field, record type). */
#define SIDECAR_SECTION_LIST(X)                               \
	X(THREAD, threads, struct sidecar_thread)             \
	X(SAMPLE, samples, struct sidecar_sample)             \
	X(PROCESS, process_samples, struct sidecar_process)   \
	X(GC, collections, struct sidecar_gc)                 \
	X(ITERATION, iterations, struct sidecar_iteration)    \
	X(THIEF, thieves, struct sidecar_thief)               \
	X(NETWORK, networks, struct sidecar_network)          \
	X(SOCKET, socket_samples, struct sidecar_socket)      \
	X(NIC, nics, struct sidecar_nic)                      \
	X(NIC_SAMPLE, nic_samples, struct sidecar_nic_sample) \
	X(PRESSURE, pressures, struct sidecar_pressure)       \
	X(GPU, gpus, struct sidecar_gpu)                      \
	X(GPU_SAMPLE, gpu_samples, struct sidecar_gpu_sample) \
	X(NIC_COUNT, nic_counters, struct sidecar_nic_count)  \
	X(GPU_ID, gpu_ids, struct sidecar_gpu_id)             \
	X(RANK, ranks, struct sidecar_rank)                   \
	X(AWAITED, awaited, struct sidecar_awaited)           \
	X(FLOW, flows, struct sidecar_flow)

#define SIDECAR_FIRST_SECTIONS 6u /* of files whose header has no section_cnt */
#define SIDECAR_SECTIONS_MAX 64u

enum sidecar_section {
#define X(id, field, type) SIDECAR_##id,
	SIDECAR_SECTION_LIST(X)
#undef X
		SIDECAR_SECTION_CNT
};

struct sidecar_thread {
	uint32_t tid;
	char name[20]; /* comm, NUL-terminated */
};

/* Cumulative counters of one thread at one moment. */
struct sidecar_sample {
	int64_t time_ns;
	uint64_t cpu_ns;
	uint64_t run_delay_ns; /* runnable, but waiting for a CPU */
	uint32_t tid;
	uint32_t reserved;
};

/* Cumulative counters of the whole worker process at one moment. */
struct sidecar_process {
	int64_t time_ns;
	uint64_t cpu_ns;
	uint32_t cpu_cnt; /* CPUs it may use */
	uint32_t reserved;
};

struct sidecar_gc {
	int64_t start_ns, dur_ns;
	uint32_t generation;
	uint32_t reserved;
};

/* Iteration `step` began here and ended where the next record begins. */
struct sidecar_iteration {
	uint64_t step;
	int64_t start_ns;
};

/* A worker of this host, including the sidecar's own; the list may be incomplete. */
struct sidecar_rank {
	int32_t rank;
	uint32_t host_cnt; /* ranks of the job on this host, from its launcher; 0: unknown */
};

/* For whom the training thread waited, and what they did meanwhile. One record at most. */
struct sidecar_awaited {
	double frac;	     /* share of the samples at work that were there */
	uint32_t sample_cnt; /* of those at work */
	char place[496];     /* functions and a system call, the outermost first; NUL-terminated */
	uint32_t by;	     /* enum awaited_by */
};

struct sidecar_header {
	uint32_t magic, version;
	uint32_t pid, tid; /* the worker and its training thread */
	int32_t rank;
	uint32_t section_cnt;	  /* entries of sections; 0: SIDECAR_FIRST_SECTIONS */
	int64_t mono_ns, wall_ns; /* the same moment on both clocks */
	int64_t start_ns, end_ns; /* the window, CLOCK_MONOTONIC */
	char host[64];		  /* NUL-terminated */
	struct {
		uint64_t off, cnt; /* bytes from the start of the file; records */
	} sections[SIDECAR_SECTION_CNT];
};
_Static_assert(sizeof(struct sidecar_thread) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_sample) == 32, "on disk");
_Static_assert(sizeof(struct sidecar_process) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_gc) == 24, "on disk");
_Static_assert(sizeof(struct sidecar_iteration) == 16, "on disk");
_Static_assert(sizeof(struct sidecar_rank) == 8, "on disk");
_Static_assert(sizeof(struct sidecar_awaited) == 512, "on disk");
_Static_assert(sizeof(struct sidecar_header) == 120 + 16 * SIDECAR_SECTION_CNT, "on disk");
