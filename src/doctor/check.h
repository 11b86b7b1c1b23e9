/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of doctor: what a check is given and what it fills. One file for each
 * area; doctor.c has the table that names them all.
 */
#pragma once

#include "doctor/doctor.h"

#define FACTS_BYTES 16384
#define PYTHONS_MAX 8

struct interpreter {
	char path[1024];
	char version[64]; /* "3.11.2", "3.7.1 (older than 3.8)"; "": does not start */
	char torch[64];	  /* "2.13.0", "" without */
	bool works;
};

/* What several checks share, found out once, before the first of them. */
struct doctor {
	struct doctor_setup setup;
	bool here; /* no other root: what isn't a file can be tried */
	struct interpreter pythons[PYTHONS_MAX];
	size_t python_cnt;	  /* the first is the one examined */
	char python[FACTS_BYTES]; /* "key=value" lines of perftracker/_doctor.py */
	char python_why[256];	  /* why those are incomplete; "" when not */
};

struct check {
	const char *id, *area;
	bool needed;
	/* Fills state and found; costs and action where those of the table don't fit. */
	void (*look)(const struct doctor *doctor, struct doctor_result *ret);
	const char *costs, *action; /* unless ok */
};

/* Sets state and found. */
void check_set(struct doctor_result *ret, enum doctor_state state, const char *fmt, ...)
	_printf_(3, 4);

/* Another cost and action than the table's; NULL keeps the table's. */
void check_advise(struct doctor_result *ret, const char *costs, const char *action);

/* --- what checks look at --- */

/* A whole file below the root, NUL-terminated, cut to size. Returns its length or -errno. */
_must_check_ int look_file(const struct doctor *doctor, const char *path, char *text, size_t size);

/* Its first line. Returns 0 or -errno. */
_must_check_ int look_line(const struct doctor *doctor, const char *path, char *text, size_t size);

/* A number at its start. Returns 0 or -errno. */
_must_check_ int look_number(const struct doctor *doctor, const char *path, int64_t *ret);

/* What follows key ("Uid:") to the end of its line in a text, without spaces around it. */
bool look_field(const char *text, const char *key, char *ret, size_t size);

/* Whether a path is there below the root. */
bool look_exists(const struct doctor *doctor, const char *path);

/* Value of an environment variable, NULL when it is unset or empty. Borrowed. */
const char *look_env(const struct doctor *doctor, const char *name);

/* Value of "key=value" among lines; false when there is none. */
bool facts_get(const char *facts, const char *key, char *ret, size_t size);

/* Whether this process may administer the machine (CAP_SYS_ADMIN). */
bool look_privileged(const struct doctor *doctor);

/* --- the checks (python.c, kernel.c, limits.c, gpu.c, profilers.c) --- */

/* Finds the interpreters and examines the first. To be called once, first. */
void python_examine(struct doctor *doctor);

void check_python(const struct doctor *doctor, struct doctor_result *ret);
void check_pythons(const struct doctor *doctor, struct doctor_result *ret);
void check_torch(const struct doctor *doctor, struct doctor_result *ret);
void check_attach(const struct doctor *doctor, struct doctor_result *ret);
void check_agent(const struct doctor *doctor, struct doctor_result *ret);
void check_stacks(const struct doctor *doctor, struct doctor_result *ret);
void check_operators(const struct doctor *doctor, struct doctor_result *ret);

void check_kernel(const struct doctor *doctor, struct doctor_result *ret);
void check_clock(const struct doctor *doctor, struct doctor_result *ret);
void check_schedstats(const struct doctor *doctor, struct doctor_result *ret);
void check_pressure(const struct doctor *doctor, struct doctor_result *ret);
void check_sockets(const struct doctor *doctor, struct doctor_result *ret);
void check_self_memory(const struct doctor *doctor, struct doctor_result *ret);
void check_ptrace(const struct doctor *doctor, struct doctor_result *ret);
void check_perf_events(const struct doctor *doctor, struct doctor_result *ret);
void check_runtime_dir(const struct doctor *doctor, struct doctor_result *ret);

void check_memory_files(const struct doctor *doctor, struct doctor_result *ret);
void check_memory_limit(const struct doctor *doctor, struct doctor_result *ret);
void check_shm(const struct doctor *doctor, struct doctor_result *ret);
void check_locked_memory(const struct doctor *doctor, struct doctor_result *ret);
void check_cpu_limit(const struct doctor *doctor, struct doctor_result *ret);
void check_cpus(const struct doctor *doctor, struct doctor_result *ret);
void check_container(const struct doctor *doctor, struct doctor_result *ret);
void check_infiniband(const struct doctor *doctor, struct doctor_result *ret);

void check_nvidia_driver(const struct doctor *doctor, struct doctor_result *ret);
void check_gpu_counters(const struct doctor *doctor, struct doctor_result *ret);
void check_cuda(const struct doctor *doctor, struct doctor_result *ret);
void check_nvml(const struct doctor *doctor, struct doctor_result *ret);
void check_cupti(const struct doctor *doctor, struct doctor_result *ret);
void check_nccl(const struct doctor *doctor, struct doctor_result *ret);
void check_amd_driver(const struct doctor *doctor, struct doctor_result *ret);
void check_hip(const struct doctor *doctor, struct doctor_result *ret);
void check_rocprofiler(const struct doctor *doctor, struct doctor_result *ret);

void check_injection(const struct doctor *doctor, struct doctor_result *ret);
void check_nccl_plugin(const struct doctor *doctor, struct doctor_result *ret);
void check_preload(const struct doctor *doctor, struct doctor_result *ret);
void check_torch_profiler(const struct doctor *doctor, struct doctor_result *ret);
void check_profilers(const struct doctor *doctor, struct doctor_result *ret);
void check_dcgm(const struct doctor *doctor, struct doctor_result *ret);
