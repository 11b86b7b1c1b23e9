/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface of doctor's checks: their input and output. One file per area; doctor.c has
 * the table of all checks.
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

/* Data shared by several checks, collected once before the first check. */
struct doctor {
	struct doctor_setup setup;
	bool here; /* root is this machine: checks may also try system calls */
	struct interpreter pythons[PYTHONS_MAX];
	size_t python_cnt;	  /* the first is the one examined */
	char python[FACTS_BYTES]; /* "key=value" lines of perftracker/_doctor.py */
	char python_why[256];	  /* why facts are incomplete; "" if they are complete */
};

struct check {
	const char *id, *area;
	bool needed;
	/* Fills state and found; also costs and action if those of the table do not fit. */
	void (*look)(const struct doctor *doctor, struct doctor_result *ret);
	const char *costs, *action; /* the default texts, unless state is ok */
};

/* Sets state and found. */
void check_set(struct doctor_result *ret, enum doctor_state state, const char *fmt, ...)
	_printf_(3, 4);

/* Replaces the table's costs and action; NULL keeps the table's. */
void check_advise(struct doctor_result *ret, const char *costs, const char *action);

/* --- data of checks --- */

/* Reads a file below the root, NUL-terminated, cut to size. Returns its length or -errno. */
_must_check_ int look_file(const struct doctor *doctor, const char *path, char *text, size_t size);

/* Reads its first line. Returns 0 or -errno. */
_must_check_ int look_line(const struct doctor *doctor, const char *path, char *text, size_t size);

/* Reads a number at its start. Returns 0 or -errno. */
_must_check_ int look_number(const struct doctor *doctor, const char *path, int64_t *ret);

/* Copies the text after key ("Uid:") to the end of its line, without surrounding spaces. */
bool look_field(const char *text, const char *key, char *ret, size_t size);

/* Whether a path exists below the root. */
bool look_exists(const struct doctor *doctor, const char *path);

/* Value of an environment variable, NULL when it is unset or empty. Borrowed. */
const char *look_env(const struct doctor *doctor, const char *name);

/* Value of "key=value" in lines of text; false if the key is missing. */
bool facts_get(const char *facts, const char *key, char *ret, size_t size);

/* Whether this process has CAP_SYS_ADMIN. */
bool look_privileged(const struct doctor *doctor);

/* --- the checks (one file per area) --- */

/* Finds the interpreters and examines the first. Call it once, before the checks. */
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
void check_nats_client(const struct doctor *doctor, struct doctor_result *ret);
void check_nats_server(const struct doctor *doctor, struct doctor_result *ret);
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
