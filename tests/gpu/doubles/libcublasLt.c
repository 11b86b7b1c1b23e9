/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt likewise; a description is an int: whether A is transposed. SONAME libcublasLt.so.12. */
#include "cublas_double.h"
#include "gpu_double.h"

#include <string.h>

enum { TYPE = 0, ROWS = 2, COLS = 3, BATCH = 5, TRANSA = 3 };

static int give(void *ret, size_t size, size_t *written, const void *value, size_t value_size)
{
	if (size != value_size)
		return 7; /* CUBLAS_STATUS_INVALID_VALUE */
	memcpy(ret, value, size);
	if (written != NULL)
		*written = size;
	return 0;
}

int cublasLtMatrixLayoutGetAttribute(const void *layout, int which, void *ret, size_t size,
				     size_t *written)
{
	const struct double_layout *l = layout;

	switch (which) {
	case TYPE:
		return give(ret, size, written, &l->type, sizeof(l->type));
	case ROWS:
		return give(ret, size, written, &l->rows, sizeof(l->rows));
	case COLS:
		return give(ret, size, written, &l->cols, sizeof(l->cols));
	case BATCH:
		return give(ret, size, written, &l->batch, sizeof(l->batch));
	default:
		return 7;
	}
}

int cublasLtMatmulDescGetAttribute(const void *description, int which, void *ret, size_t size,
				   size_t *written)
{
	return which == TRANSA ? give(ret, size, written, description, sizeof(int)) : 7;
}

int cublasLtMatmul(void *handle, const void *description, const void *alpha, const void *a,
		   const void *a_layout, const void *b, const void *b_layout, const void *beta,
		   const void *c, const void *c_layout, void *d, const void *d_layout,
		   const void *algorithm, void *workspace, size_t workspace_bytes, void *queue)
{
	const struct double_layout *l = d_layout, *first = a_layout;
	int transposed;

	(void)handle, (void)alpha, (void)a, (void)b, (void)b_layout, (void)beta, (void)c;
	(void)c_layout, (void)d, (void)algorithm, (void)workspace, (void)workspace_bytes;
	memcpy(&transposed, description, sizeof(transposed));
	double_gpu_work(queue,
			DOUBLE_GEMM_NS(l->rows, l->cols,
				       transposed != 0 ? first->rows : first->cols, l->batch));
	return 0;
}
