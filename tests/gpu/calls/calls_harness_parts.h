/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of calls_harness share: calls_recorder.c reads the recorder, calls_nccl.c checks
 * collectives, calls_bench.c measures, calls_harness.c has the rest.
 */
#pragma once

#include "cublas_double.h"
#include "gpu_double.h"
#include "play_hostd.h"

#define EVERY 64 /* one of so many calls of a shape is timed, see gpucalls.h */

/* Names of the driver, which no header of the agent declares. */
int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *queue, void **parameters, void **extra);
int cuLaunchKernelEx(const void *launch, void *kernel, void **parameters, void **extra);

extern struct harness_lib {
	int (*start)(const char *socket_path, int32_t rank, int32_t local_rank, int32_t world);
	int (*run)(void);
	int (*mark)(uint32_t mark, int64_t value, uint32_t detail);
	void (*bye)(const char *exception);
} lib; /* functions of the agent library */

extern void *blas;   /* cuBLAS's handle */
extern char context; /* the job's, of the GPU */

void *queue(int number);
int launch(const char *kernel);

/* Starts the agent and waits until it has made its events. */
void check_start(void);
bool is_ready(uint64_t arg); /* arg: ignored */

/* --- calls_recorder.c --- */

void take(struct flightlog *log);
size_t timed_cnt(const char *name);
size_t cnt_of(uint16_t kind); /* records */

/* Polls until what(arg), for a limited time. */
bool soon(bool (*what)(uint64_t arg), uint64_t arg);

/* The newest record of what was timed, and the one behind it. */
bool newest(const char *name, struct ring_record ret[2]);

/* The records of the newest collective that was timed. */
bool newest_done(struct ring_record ret[4]);

/* The largest count of calls that was written. */
uint64_t calls(enum flight_calls kind, uint64_t *ret_mflop);

/* --- calls_nccl.c --- */

void check_collectives(void);
void check_captured_collective(void);
void check_other_process(void);
void check_old_nccl(void);

/* --- calls_bench.c --- */

void bench(void);
