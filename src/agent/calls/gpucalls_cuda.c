/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports CUDA's functions that multiply matrices or launch kernels, by their own names: each
 * counts the call (gpucalls.h) and calls the next function of its name. They take effect only if
 * the agent is preloaded.
 *
 * Where there is no such function (realcall.h) the caller gets an error of that library.
 *
 * Source: cublas_abi.h; CUDA's cublasLt.h, cuda.h and cuda_runtime_api.h, versions 11 to 13, as
 * far as the binary interface goes: enums are ints, handles pointers.
 */
#include "agent/calls/cublas_abi.h"
#include "agent/calls/gpucalls.h"
#include "agent/calls/realcall.h"
#include "format/shared/matmul.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	CUBLAS_NOT_INITIALIZED = 1,
	CUDA_NOT_FOUND = 500,
	CUBLAS_N = 0,	 /* CUBLAS_OP_N */
	LAYOUT_TYPE = 0, /* CUBLASLT_MATRIX_LAYOUT_TYPE */
	LAYOUT_ROWS = 2,
	LAYOUT_COLS = 3,
	LAYOUT_BATCH = 5,
	DESC_TRANSA = 3, /* CUBLASLT_MATMUL_DESC_TRANSA */
};

static const char *const blas_names[] = { "libcublas.so.12", "libcublas.so.13", "libcublas.so.11",
					  NULL };
static const char *const blaslt_names[] = { "libcublasLt.so.12", "libcublasLt.so.13",
					    "libcublasLt.so.11", NULL };
static const char *const driver_names[] = { "libcuda.so.1", NULL };
static const char *const runtime_names[] = { "libcudart.so.12", "libcudart.so.13",
					     "libcudart.so.11.0", NULL };

/* --- queues --- */

static bool queue_itself(void *queue, void **ret)
{
	*ret = queue;
	return true;
}

/* What a handle's queue is asked for with: of the library that the handle is of. */
struct blas_place {
	void *handle;
	const void *library; /* an address in it */
};

static bool queue_of_blas(void *at, void **ret)
{
	static struct realcall real = REALCALL("cublasGetStream_v2", blas_names);
	const struct blas_place *place = at;
	int (*get)(void *handle, void **ret) = NULL;

	*(void **)&get = realcall_find(&real, place->library);
	return get != NULL && get(place->handle, ret) == 0;
}

/*
 * A function of CUDA: its parameters, the arguments passed on, the result without a real function,
 * the struct gpucall, the source of its queue.
 */
#define THROUGH(function, library, failure, parameters, arguments, about, queue_of, handle) \
	EXPORT int function parameters;                                                     \
	int function parameters                                                             \
	{                                                                                   \
		static struct realcall real = REALCALL(#function, library);                 \
		int(*next) parameters = NULL;                                               \
		uint64_t timer;                                                             \
		int ret;                                                                    \
                                                                                            \
		*(void **)&next = realcall_find(&real, __builtin_return_address(0));        \
		if (next == NULL)                                                           \
			return failure;                                                     \
		if (!gpucalls_are_on())                                                     \
			return next arguments;                                              \
		struct gpucall call = about;                                                \
                                                                                            \
		call.name = #function;                                                      \
		timer = gpucalls_begin(&call, queue_of, handle);                            \
		ret = next arguments;                                                       \
		gpucalls_end(&call, timer);                                                 \
		return ret;                                                                 \
	}

#define ADDRESS(function) (*(void **)&(function))

/* In parentheses, which keep its commas together. */
#define SHAPE(type_, batch_)                            \
	((struct gpucall){ .m = (uint64_t)m,            \
			   .n = (uint64_t)n,            \
			   .k = (uint64_t)k,            \
			   .batch = (uint64_t)(batch_), \
			   .type = (uint16_t)(type_) })

/* --- cuBLAS --- */

#define BLAS(function, call, parameters, arguments)                                        \
	THROUGH(function, blas_names, CUBLAS_NOT_INITIALIZED, parameters, arguments, call, \
		queue_of_blas, (&(struct blas_place){ handle, ADDRESS(next) }))

/* Both faces of a function. KIND_CALL is below. */
#define GEMM(function, kind, type)                                                  \
	BLAS(function, kind##_CALL(type), kind##_PARAMETERS(int), kind##_ARGUMENTS) \
	BLAS(function##_64, kind##_CALL(type), kind##_PARAMETERS(int64_t), kind##_ARGUMENTS)

#define TYPED_CALL(type) SHAPE(type, 1)
#define STRIDED_CALL(type) SHAPE(type, batch)
#define BATCHED_CALL(type) SHAPE(type, batch)
#define TYPES_CALL(type) SHAPE(type, 1)
#define EX_CALL(type) SHAPE(type, 1)
#define STRIDED_EX_CALL(type) SHAPE(type, batch)
#define BATCHED_EX_CALL(type) SHAPE(type, batch)

/* Each group has sizes of its own. The real function reports invalid ones. */
struct groups {
	const void *m, *n, *k, *matrices;
	size_t size; /* of an element */
	int64_t cnt;
};

static uint64_t whole_at(const struct groups *groups, const void *numbers, int64_t i)
{
	int64_t number = groups->size == sizeof(int64_t) ? ((const int64_t *)numbers)[i]
							 : ((const int *)numbers)[i];

	return (uint64_t)MAX(number, (int64_t)0);
}

static struct gpucall groups_call(struct groups groups, int type)
{
	bool is_whole =
		groups.m != NULL && groups.n != NULL && groups.k != NULL && groups.matrices != NULL;
	struct gpucall call = { .type = (uint16_t)type };

	for (int64_t i = 0; is_whole && i < groups.cnt; i++) {
		uint64_t matrices = whole_at(&groups, groups.matrices, i);

		call.flop += matmul_flop((double)whole_at(&groups, groups.m, i),
					 (double)whole_at(&groups, groups.n, i),
					 (double)whole_at(&groups, groups.k, i), (double)matrices,
					 call.type);
		call.batch += matrices;
	}
	call.groups = (uint32_t)MIN((uint64_t)MAX(groups.cnt, (int64_t)1), (uint64_t)UINT32_MAX);
	return call;
}

#define GROUPED_CALL(type) \
	groups_call((struct groups){ m, n, k, matrices, sizeof(*m), groups }, type)
#define GROUPED_EX_CALL(type) GROUPED_CALL(type)

CUBLAS_GEMMS(GEMM)

/* --- cuBLASLt --- */

typedef int get_attribute(const void *descriptor, int which, void *ret, size_t size,
			  size_t *written);

static get_attribute *getter(struct realcall *real, const void *library)
{
	get_attribute *get = NULL;

	*(void **)&get = realcall_find(real, library);
	return get;
}

/* An attribute of a descriptor; 0 when it can't be read. */
static uint64_t attribute(get_attribute *get, const void *descriptor, int which, size_t bytes)
{
	uint64_t value = 0;
	size_t written = 0;

	if (get == NULL || descriptor == NULL ||
	    get(descriptor, which, &value, bytes, &written) != 0)
		return 0;
	return value;
}

static bool is_transposed(const void *library, const void *description)
{
	static struct realcall real = REALCALL("cublasLtMatmulDescGetAttribute", blaslt_names);

	return attribute(getter(&real, library), description, DESC_TRANSA, sizeof(int32_t)) !=
	       CUBLAS_N;
}

/* Rows and columns are the matrix's, independent of its memory order. */
static struct gpucall lt_call(const void *library, const void *description, const void *a,
			      const void *d)
{
	static struct realcall real = REALCALL("cublasLtMatrixLayoutGetAttribute", blaslt_names);
	get_attribute *layout = getter(&real, library);
	int inner = is_transposed(library, description) ? LAYOUT_ROWS : LAYOUT_COLS;

	return (struct gpucall){ .m = attribute(layout, d, LAYOUT_ROWS, 8),
				 .n = attribute(layout, d, LAYOUT_COLS, 8),
				 .k = attribute(layout, a, inner, 8),
				 .batch = attribute(layout, d, LAYOUT_BATCH, 4),
				 .type = (uint16_t)attribute(layout, a, LAYOUT_TYPE, 4) };
}

THROUGH(cublasLtMatmul, blaslt_names, CUBLAS_NOT_INITIALIZED,
	(void *handle, const void *description, const void *alpha, const void *a,
	 const void *a_layout, const void *b, const void *b_layout, const void *beta, const void *c,
	 const void *c_layout, void *d, const void *d_layout, const void *algorithm,
	 void *workspace, size_t workspace_bytes, void *queue),
	(handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
	 algorithm, workspace, workspace_bytes, queue),
	lt_call(ADDRESS(next), description, a_layout, d_layout), queue_itself, queue)

/* --- launches --- */

struct dim3 {
	unsigned x, y, z;
};

/* CUlaunchConfig and cudaLaunchConfig_t, as far as read. */
struct driver_launch {
	unsigned grid[3], block[3], shared_bytes;
	void *queue;
};

struct runtime_launch {
	struct dim3 grid, block;
	size_t shared_bytes;
	void *queue;
};

/* What gets no configuration gets an error from the real function. */
static bool queue_of_driver_launch(void *at, void **ret)
{
	const struct driver_launch *launch = at;

	if (launch == NULL)
		return false;
	*ret = launch->queue;
	return true;
}

static bool queue_of_runtime_launch(void *at, void **ret)
{
	const struct runtime_launch *launch = at;

	if (launch == NULL)
		return false;
	*ret = launch->queue;
	return true;
}

/* NULL: a driver before CUDA 12.3. */
static const char *driver_name(const void *kernel)
{
	static struct realcall real = REALCALL("cuFuncGetName", driver_names);
	int (*get)(const char **ret, const void *kernel) = NULL;
	const char *name = NULL;

	*(void **)&get = realcall_find(&real, &real);
	return get != NULL && get(&name, kernel) == 0 ? name : NULL;
}

/* The runtime's kernels are addresses in the program. */
static const char *runtime_name(const void *kernel)
{
	static struct realcall real = REALCALL("cudaGetFuncBySymbol", runtime_names);
	int (*get)(void **ret, const void *kernel) = NULL;
	void *loaded = NULL;

	*(void **)&get = realcall_find(&real, kernel);
	return get != NULL && get(&loaded, kernel) == 0 ? driver_name(loaded) : NULL;
}

/* A launched kernel has no shape that describes its work. */
#define LAUNCHED(kernel, names)                      \
	{                                            \
		.what = (kernel), .name_of = (names) \
	}

THROUGH(cuLaunchKernel, driver_names, CUDA_NOT_FOUND,
	(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	 unsigned shared_bytes, void *queue, void **parameters, void **extra),
	(kernel, gx, gy, gz, bx, by, bz, shared_bytes, queue, parameters, extra),
	LAUNCHED(kernel, driver_name), queue_itself, queue)

THROUGH(cuLaunchKernelEx, driver_names, CUDA_NOT_FOUND,
	(const struct driver_launch *launch, void *kernel, void **parameters, void **extra),
	(launch, kernel, parameters, extra), LAUNCHED(kernel, driver_name), queue_of_driver_launch,
	(void *)(uintptr_t)launch)

THROUGH(cudaLaunchKernel, runtime_names, CUDA_NOT_FOUND,
	(const void *kernel, struct dim3 grid, struct dim3 block, void **parameters,
	 size_t shared_bytes, void *queue),
	(kernel, grid, block, parameters, shared_bytes, queue), LAUNCHED(kernel, runtime_name),
	queue_itself, queue)

THROUGH(cudaLaunchKernelExC, runtime_names, CUDA_NOT_FOUND,
	(const struct runtime_launch *launch, const void *kernel, void **parameters),
	(launch, kernel, parameters), LAUNCHED(kernel, runtime_name), queue_of_runtime_launch,
	(void *)(uintptr_t)launch)
