/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs with the agent: calls_harness --bench. */
#include "base/clock.h"
#include "calls_harness_parts.h"

#include <dlfcn.h>
#include <unistd.h>

#define BENCH_CNT 1000
#define BENCH_ROUNDS 300

static int(*real_gemm) TYPED_PARAMETERS(int);
static int (*real_lt)(void *handle, const void *description, const void *alpha, const void *a,
		      const void *a_layout, const void *b, const void *b_layout, const void *beta,
		      const void *c, const void *c_layout, void *d, const void *d_layout,
		      const void *algorithm, void *workspace, size_t workspace_bytes, void *queue);
static int (*real_launch)(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			  unsigned by, unsigned bz, unsigned shared, void *queue, void **parameters,
			  void **extra);

static void find_real(void)
{
	void *handle = dlopen("libcublas.so.12", RTLD_LAZY | RTLD_NOLOAD);

	CHECK(handle != NULL);
	*(void **)&real_gemm = dlsym(handle, "cublasSgemm_v2");
	handle = dlopen("libcublasLt.so.12", RTLD_LAZY | RTLD_NOLOAD);
	CHECK(handle != NULL);
	*(void **)&real_lt = dlsym(handle, "cublasLtMatmul");
	handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	CHECK(handle != NULL);
	*(void **)&real_launch = dlsym(handle, "cuLaunchKernel");
	CHECK(real_gemm != NULL && real_lt != NULL && real_launch != NULL);
}

static const char bench_kernel[] = "bench_kernel";

static void bench_real_launch(void)
{
	(void)real_launch((void *)(uintptr_t)bench_kernel, 1, 1, 1, 1, 1, 1, 0, queue(4), NULL,
			  NULL);
}

static void bench_launch(void)
{
	(void)launch(bench_kernel);
}

static void bench_real_gemm(void)
{
	(void)real_gemm TYPED_PASS(blas, int, 512, 512, 512);
}

static void bench_gemm(void)
{
	(void)cublasSgemm_v2 TYPED_PASS(blas, int, 512, 512, 512);
}

static const struct double_layout bench_layout = { 2, 512, 512, 1 };
static const int bench_transposed;

static void bench_real_lt(void)
{
	(void)real_lt(NULL, &bench_transposed, NULL, NULL, &bench_layout, NULL, &bench_layout, NULL,
		      NULL, &bench_layout, NULL, &bench_layout, NULL, NULL, 0, queue(3));
}

static void bench_lt(void)
{
	(void)cublasLtMatmul(NULL, &bench_transposed, NULL, NULL, &bench_layout, NULL,
			     &bench_layout, NULL, NULL, &bench_layout, NULL, &bench_layout, NULL,
			     NULL, 0, queue(3));
}

/* ns of one call, the least of several rounds. */
static double cost(void (*what)(void))
{
	double best = 1e9;

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		int64_t start_ns = clock_mono_ns();
		double ns;

		for (int i = 0; i < BENCH_CNT; i++)
			what();
		ns = (double)(clock_mono_ns() - start_ns) / BENCH_CNT;
		best = ns < best ? ns : best;
	}
	return best;
}

void bench(void)
{
	double gemm, lt, kernel;

	find_real();
	kernel = cost(bench_real_launch);
	gemm = cost(bench_real_gemm);
	lt = cost(bench_real_lt);
	printf("cuLaunchKernel, off: %+.1f ns (double)\n", cost(bench_launch) - kernel);
	printf("cublasSgemm, off: %+.1f ns (double)\n", cost(bench_gemm) - gemm);
	printf("cublasLtMatmul, off: %+.1f ns (double)\n", cost(bench_lt) - lt);
	CHECK(lib.start(hostd.path, 0, 0, 1) == 0);
	take_recorder();
	double_gpu_context(NULL); /* no GPU: nothing is timed */
	CHECK(lib.run() == 0);
	printf("cuLaunchKernel, counted: %+.1f ns (double)\n", cost(bench_launch) - kernel);
	printf("cublasSgemm, counted: %+.1f ns (double)\n", cost(bench_gemm) - gemm);
	printf("cublasLtMatmul, counted: %+.1f ns (double)\n", cost(bench_lt) - lt);
	double_gpu_context(&context);
	while (!is_ready(0)) {
		bench_gemm();
		(void)usleep(1000);
	}
	(void)usleep(50000);
	printf("cuLaunchKernel, one in %d timed: %+.1f ns (double)\n", EVERY,
	       cost(bench_launch) - kernel);
	printf("cublasSgemm, one in %d timed: %+.1f ns (double)\n", EVERY, cost(bench_gemm) - gemm);
	lib.bye(NULL);
}
