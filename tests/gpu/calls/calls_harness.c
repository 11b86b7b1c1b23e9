/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that multiplies matrices on doubles of CUDA's libraries, with the agent library as it was
 * built; plays the daemon, too, and reads the recorder that it was sent.
 *
 *	LD_PRELOAD=LIBRARY calls_harness LIBRARY		checks
 *	LD_PRELOAD=LIBRARY calls_harness LIBRARY --bench	what a call costs
 *	LD_PRELOAD=LIBRARY calls_harness LIBRARY --keep FILE	some of it; leaves the recorder there
 *	calls_harness LIBRARY --imported			nothing is seen
 *	DOUBLE_NCCL_VERSION=4 calls_harness LIBRARY --old	NCCL before 2.28
 */
#include "base/clock.h"
#include "calls_harness_parts.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL 256

struct harness_lib lib;

void *blas;
char context;

void *queue(int number)
{
	return (void *)(uintptr_t)number;
}

static void open_library(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	CHECK(handle != NULL);
	*(void **)&lib.start = dlsym(handle, "pt_agent_start");
	*(void **)&lib.run = dlsym(handle, "pt_agent_run");
	*(void **)&lib.mark = dlsym(handle, "pt_agent_mark");
	*(void **)&lib.bye = dlsym(handle, "pt_agent_bye");
	CHECK(lib.start != NULL && lib.run != NULL && lib.mark != NULL && lib.bye != NULL);
}

static void step(void)
{
	(void)lib.mark(MARK_ITERATION, 0, 0);
}

/* --- calls of the job --- */

static int gemm_ex(int m, int n, int k)
{
	return cublasGemmEx EX_PASS(blas, int, m, n, k);
}

static void gemms(int cnt, int m, int n, int k)
{
	for (int i = 0; i < cnt; i++)
		CHECK(gemm_ex(m, n, k) == 0);
}

static int lt_matmul(int transposed, int64_t m, int64_t n, int64_t k, int batch)
{
	struct double_layout a = { 2, transposed != 0 ? k : m, transposed != 0 ? m : k, batch };
	struct double_layout b = { 2, k, n, batch }, d = { 2, m, n, batch };

	return cublasLtMatmul(NULL, &transposed, NULL, NULL, &a, NULL, &b, NULL, NULL, &d, NULL, &d,
			      NULL, NULL, 0, queue(3));
}

int launch(const char *kernel)
{
	return cuLaunchKernel((void *)(uintptr_t)kernel, 1, 1, 1, 1, 1, 1, 0, queue(4), NULL, NULL);
}

static bool has_matmuls(uint64_t cnt)
{
	uint64_t mflop = 0;

	return calls(FLIGHT_CALLS_MATMUL, &mflop) == cnt;
}

static bool has_launches(uint64_t cnt)
{
	uint64_t mflop = 0;

	return calls(FLIGHT_CALLS_LAUNCH, &mflop) == cnt;
}

static bool has_gemms(uint64_t cnt)
{
	return timed_cnt("cublasGemmEx") == cnt;
}

bool is_ready(uint64_t arg)
{
	(void)arg;
	return double_gpu_count("created") == 2 * POOL;
}

/* --- checks --- */

static uint64_t matmuls; /* made while they were counted */

/* The driver is found, a thread says which GPU, events are made. */
void check_start(void)
{
	gemms(300, 1, 2, 3);
	CHECK(double_gpu_count("records") == 0);
	CHECK(lib.start(hostd.path, 0, 0, 1) == 0);
	take_recorder();
	gemms(300, 1, 2, 3);
	CHECK(lib.run() == 0);
	while (!is_ready(0)) {
		gemms(1, 1, 1, 1);
		matmuls++;
		(void)usleep(1000);
	}
	(void)usleep(50000); /* the last of them is made, not yet ready */
}

static void check_shapes(void)
{
	struct ring_record found[2];
	uint64_t mflop = 0;

	gemms(2 * EVERY, 1000, 2000, 3000);
	CHECK(soon(has_gemms, 2));
	CHECK(newest("cublasGemmEx", found));
	CHECK(found[0].value == DOUBLE_GEMM_NS(1000, 2000, 3000, 1));
	CHECK(found[0].time_ns <= clock_mono_ns());
	CHECK(found[1].kind == FLIGHT_TIMED_SHAPE && found[1].detail == 14);
	CHECK(found[1].value == ((int64_t)1000 << 32 | 2000));
	CHECK(found[1].extra == ((uint64_t)3000 << 32 | 1));
	matmuls += 2 * EVERY;
	CHECK(soon(has_matmuls, matmuls)); /* not those that it makes itself of cuBLASLt */
	CHECK(calls(FLIGHT_CALLS_MATMUL, &mflop) == matmuls);
	CHECK(mflop == 12000 * 2 * EVERY);
	CHECK(gemm_ex(-1, 2000, 3000) == 0 && gemm_ex(-1, -1, -1) == 0); /* no work */
	gemms(EVERY, 1000, 2000, 3000);
	matmuls += 2 + EVERY;
	CHECK(soon(has_matmuls, matmuls));
	CHECK(calls(FLIGHT_CALLS_MATMUL, &mflop) == matmuls);
	CHECK(mflop == 12000 * 3 * EVERY);
}

static void check_lt(void)
{
	struct ring_record found[2];

	for (int i = 0; i < EVERY; i++)
		CHECK(lt_matmul(1, 64, 32, 4096, 5) == 0);
	matmuls += EVERY;
	CHECK(soon(has_matmuls, matmuls));
	CHECK(newest("cublasLtMatmul", found));
	CHECK(found[0].value == DOUBLE_GEMM_NS(64, 32, 4096, 5) && found[1].detail == 2);
	CHECK(found[1].value == ((int64_t)64 << 32 | 32));
	CHECK(found[1].extra == ((uint64_t)4096 << 32 | 5));
}

/* --- each function of cuBLAS --- */

enum { M = 300, N = 400, K = 500 };

#define CALL(function, kind, type)                                        \
	static int call_##function(void)                                  \
	{                                                                 \
		return function kind##_PASS(blas, int, M, N, K);          \
	}                                                                 \
	static int call_##function##_64(void)                             \
	{                                                                 \
		return function##_64 kind##_PASS(blas, int64_t, M, N, K); \
	}
CUBLAS_GEMMS(CALL)

enum kind { TYPED, STRIDED, BATCHED, TYPES, EX, STRIDED_EX, BATCHED_EX, GROUPED, GROUPED_EX };

enum { a_type = GEMM_TYPE };

static const struct gemm {
	const char *name;
	int (*call)(void);
	enum kind kind;
	uint16_t type;
} every_gemm[] = {
#define ROW(function, kind, type)                   \
	{ #function, call_##function, kind, type }, \
		{ #function "_64", call_##function##_64, kind, type },
	CUBLAS_GEMMS(ROW)
};

static bool is_grouped(const struct gemm *gemm)
{
	return gemm->kind == GROUPED || gemm->kind == GROUPED_EX;
}

static int batch_of(const struct gemm *gemm)
{
	return gemm->kind == TYPED || gemm->kind == TYPES || gemm->kind == EX ? 1 : GEMM_BATCH;
}

static void check_gemm(const struct gemm *gemm)
{
	int batch = batch_of(gemm);
	struct ring_record found[2];

	CHECK(newest(gemm->name, found) && found[1].detail == gemm->type);
	if (is_grouped(gemm)) {
		CHECK(found[0].value ==
		      DOUBLE_GEMM_NS(M, N, K, 3) + DOUBLE_GEMM_NS(2 * M, 2 * N, 2 * K, 4));
		CHECK(found[1].kind == FLIGHT_TIMED_GROUPS);
		CHECK(found[1].value == (int64_t)GEMM_GROUP_FLOP(M, N, K));
		CHECK(found[1].extra == ((uint64_t)GEMM_GROUPS << 32 | GEMM_GROUP_MATRICES));
		return;
	}
	CHECK(found[0].value == DOUBLE_GEMM_NS(M, N, K, batch));
	CHECK(found[1].kind == FLIGHT_TIMED_SHAPE);
	CHECK(found[1].value == ((int64_t)M << 32 | N));
	CHECK(found[1].extra == ((uint64_t)K << 32 | (uint32_t)batch));
}

static double mflop_of(const struct gemm *gemm)
{
	int is_complex = gemm->type == TYPE_C_32F || gemm->type == TYPE_C_64F;

	if (is_grouped(gemm))
		return GEMM_GROUP_FLOP(M, N, K) * 1e-6;
	return 2e-6 * M * N * K * batch_of(gemm) * (is_complex ? 4 : 1);
}

/* Arguments arrive in their order (the double looks at them), work and time are those of it. */
static void check_every_gemm(void)
{
	uint64_t before = 0, mflop = 0;
	double expected = 0;

	CHECK(calls(FLIGHT_CALLS_MATMUL, &before) == matmuls);
	for (size_t i = 0; i < ARRAY_SIZE(every_gemm); i++) {
		for (int nth = 0; nth < EVERY; nth++)
			CHECK(every_gemm[i].call() == 0);
		matmuls += EVERY;
		expected += EVERY * mflop_of(&every_gemm[i]);
	}
	CHECK(soon(has_matmuls, matmuls));
	for (size_t i = 0; i < ARRAY_SIZE(every_gemm); i++)
		check_gemm(&every_gemm[i]);
	CHECK(calls(FLIGHT_CALLS_MATMUL, &mflop) == matmuls);
	CHECK((double)(mflop - before) > expected - 2 && (double)(mflop - before) < expected + 2);
}

/* Sizes that are never the same again are one shape, each call with its own work. */
static void check_groups(void)
{
	size_t before = timed_cnt("cublasGemmGroupedBatchedEx");
	struct ring_record found[2];
	int size = 0;

	for (int i = 0; i < EVERY; i++) {
		size = 301 + i;
		CHECK(cublasGemmGroupedBatchedEx GROUPED_EX_PASS(blas, int, size, 1, 1) == 0);
	}
	matmuls += EVERY;
	CHECK(soon(has_matmuls, matmuls));
	CHECK(timed_cnt("cublasGemmGroupedBatchedEx") == before + 1);
	CHECK(newest("cublasGemmGroupedBatchedEx", found));
	CHECK(found[1].value == (int64_t)GEMM_GROUP_FLOP(301 + 3, 1, 1));
}

static void check_launches(void)
{
	static const char kernel[] = "triton_poi_fused_add";
	const struct {
		unsigned sizes[7];
		void *queue;
	} config = { { 1, 1, 1, 1, 1, 1, 0 }, queue(4) };
	int64_t before = double_gpu_count("launches");
	struct ring_record found[2];

	for (int i = 0; i < EVERY; i++) {
		CHECK(launch(kernel) == 0);
		CHECK(cuLaunchKernelEx(&config, (void *)(uintptr_t)kernel, NULL, NULL) == 0);
	}
	CHECK(double_gpu_count("launches") - before == 2 * EVERY);
	CHECK(soon(has_launches, 2 * EVERY));
	CHECK(timed_cnt(kernel) == 2);
	CHECK(newest(kernel, found) && found[0].value == 2000);
	CHECK(found[1].kind != FLIGHT_TIMED_SHAPE);
	for (int i = 0; i < EVERY; i++)
		CHECK(cuLaunchKernelEx(NULL, (void *)(uintptr_t) "none", NULL, NULL) == 1);
	CHECK(soon(has_launches, 3 * EVERY) && timed_cnt("none") == 0);
}

/* The agent adds no node to a graph and breaks no capture of the job. */
static void check_capture(void)
{
	int64_t records = double_gpu_count("records");
	size_t before = timed_cnt("cublasGemmEx");

	double_gpu_capture(queue(5), true);
	CHECK(cublasSetStream_v2(blas, queue(5)) == 0);
	gemms(3 * EVERY, 11, 12, 13);
	CHECK(cublasSetStream_v2(blas, NULL) == 0); /* may not even be asked */
	gemms(3 * EVERY, 11, 12, 13);
	CHECK(double_gpu_count("records") == records);
	CHECK(cublasSetStream_v2(blas, queue(6)) == 0);
	gemms(2 * EVERY, 11, 12, 13);
	CHECK(soon(has_gemms, before + 2));
	double_gpu_capture(queue(5), false);
	CHECK(cublasSetStream_v2(blas, queue(1)) == 0);
	matmuls += 8 * EVERY;
	CHECK(double_gpu_fault()[0] == '\0');
}

/* The GPU is behind: what has no pair of events is counted, nothing waits. */
static void check_full_pool(void)
{
	size_t before = timed_cnt("cublasGemmEx");
	uint64_t drops = hostd.flight->drops.timed;

	double_gpu_hold(true);
	gemms((POOL + 20) * EVERY, 21, 22, 23);
	matmuls += (POOL + 20) * EVERY;
	CHECK(timed_cnt("cublasGemmEx") == before);
	CHECK(hostd.flight->drops.timed >= drops + 20);
	double_gpu_hold(false);
	CHECK(soon(has_gemms, before + POOL));
	gemms(EVERY, 21, 22, 23);
	matmuls += EVERY;
	CHECK(soon(has_gemms, before + POOL + 1));
}

static void *other_gpu(void *arg)
{
	double_gpu_context(arg);
	gemms(EVERY, 31, 32, 33);
	return NULL;
}

static void check_other_context(void)
{
	static char another;
	uint64_t drops = hostd.flight->drops.timed;
	int64_t records = double_gpu_count("records");

	(void)other_gpu(&another);
	double_gpu_context(&context);
	matmuls += EVERY;
	CHECK(hostd.flight->drops.timed == drops + 1);
	CHECK(double_gpu_count("records") == records);
}

/* Left out by the daemon because it costs too much, and taken up again. */
static void check_backoff(void)
{
	int64_t records = double_gpu_count("records");
	size_t before = timed_cnt("cublasGemmEx");

	atomic_store(&hostd.flight->block.backoff, BACKOFF_ALWAYS);
	step();
	gemms(3 * EVERY, 41, 42, 43);
	CHECK(double_gpu_count("records") == records);
	atomic_store(&hostd.flight->block.backoff, BACKOFF_NONE);
	step();
	gemms(EVERY, 41, 42, 43);
	matmuls += EVERY;
	CHECK(soon(has_gemms, before + 1));
	CHECK(soon(has_matmuls, matmuls));
}

static void check_fork(void)
{
	int64_t records = double_gpu_count("records");
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		gemms(4 * EVERY, 51, 52, 53);
		_exit(double_gpu_count("records") == records ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The job goes on as if nothing were there. */
static void check_trouble(void)
{
	uint64_t drops = hostd.flight->drops.timed;
	int64_t records;

	double_gpu_fail("cuEventRecord", 700);
	gemms(EVERY, 61, 62, 63);
	CHECK(hostd.flight->drops.timed == drops + 1);
	records = double_gpu_count("records");
	double_gpu_fail(NULL, 0);
	gemms(4 * EVERY, 61, 62, 63);
	CHECK(double_gpu_count("records") == records);
	matmuls += 5 * EVERY;
	CHECK(soon(has_matmuls, matmuls)); /* counted all the same */
}

static void check_and_keep(const char *path)
{
	struct flightlog log;

	check_start();
	check_shapes();
	check_groups();
	check_collectives();
	take(&log);
	CHECK(flightlog_write(&log, path, NULL) == 0);
	flightlog_done(&log);
	lib.bye(NULL);
}

static void check_all(void)
{
	check_start();
	check_shapes();
	check_lt();
	check_every_gemm();
	check_groups();
	check_launches();
	check_capture();
	check_full_pool();
	check_other_context();
	check_collectives();
	check_captured_collective();
	check_other_process();
	check_backoff();
	check_fork();
	check_trouble();
	lib.bye(NULL);
	gemms(EVERY, 1, 2, 3);
	CHECK(double_gpu_fault()[0] == '\0');
	printf("ok\n");
}

/* As a plain import has it: the job's calls go to CUDA's libraries at once. */
static void check_imported(void)
{
	uint64_t mflop = 0;

	CHECK(lib.start(hostd.path, 0, 0, 1) == 0);
	take_recorder();
	CHECK(lib.run() == 0);
	(void)usleep(100000);
	gemms(10 * EVERY, 1, 2, 3);
	(void)usleep(1100000);
	CHECK(calls(FLIGHT_CALLS_MATMUL, &mflop) == 0 && double_gpu_count("created") == 0);
	lib.bye(NULL);
	printf("ok\n");
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";

	CHECK(argc >= 2 && setenv("PERFTRACKER_GPU_TIMES", "1", 1) == 0);
	open_daemon();
	open_library(argv[1]);
	double_gpu_context(&context);
	CHECK(cublasCreate_v2(&blas) == 0 && cublasSetStream_v2(blas, queue(1)) == 0);
	if (strcmp(how, "--bench") == 0)
		bench();
	else if (strcmp(how, "--keep") == 0 && argc > 3)
		check_and_keep(argv[3]);
	else if (strcmp(how, "--imported") == 0)
		check_imported();
	else if (strcmp(how, "--old") == 0)
		check_old_nccl();
	else
		check_all();
	close_daemon();
	return 0;
}
