/* SPDX-License-Identifier: Apache-2.0 */
#include "center/anysize.h"

#include "center/columns/columns_report.h"

#include <errno.h>
#include <string.h>

/* A copy without an arena of its own: fingerprint_done() of it frees nothing. */
static int lend(void *arg, uint64_t tag, struct fingerprint *ret)
{
	const struct fingerprint *const *fps = arg;

	*ret = *fps[tag];
	arena_init(&ret->arena);
	return 0;
}

static int rank_cmp(const void *a, const void *b)
{
	const struct fingerprint *x = *(const struct fingerprint *const *)a;
	const struct fingerprint *y = *(const struct fingerprint *const *)b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int check_ranks(const struct fingerprint *const *sorted, size_t cnt, struct err *err)
{
	for (size_t i = 1; i < cnt; i++) {
		if (sorted[i]->rank == sorted[i - 1]->rank)
			return err_set(err, EINVAL,
				       "rank %d: expected one worker, found two: %s and %s",
				       sorted[i]->rank, sorted[i - 1]->source, sorted[i]->source);
	}
	return 0;
}

static int add_workers(struct columns *columns, const struct fingerprint *const *sorted, size_t cnt,
		       struct err *err)
{
	int error = 0;

	for (size_t i = 0; i < cnt && error == 0; i++)
		error = columns_fingerprint(columns, sorted[i], i);
	if (error == 0)
		error = columns_join(columns);
	return error == 0 ? 0
			  : err_set(err, -error, "%s while joining %zu workers", strerror(-error),
				    cnt);
}

static int localize_columns(const struct fingerprint *const *fps, size_t cnt,
			    const struct localize_options *options, struct report *ret,
			    struct err *err)
{
	const struct fingerprint **sorted = calloc(cnt, sizeof(*sorted));
	struct columns columns = { 0 };
	int error;

	if (sorted == NULL)
		return err_set(err, ENOMEM, "out of memory while comparing %zu workers", cnt);
	memcpy(sorted, fps, cnt * sizeof(*sorted));
	qsort(sorted, cnt, sizeof(*sorted), rank_cmp);
	error = check_ranks(sorted, cnt, err);
	if (error == 0)
		error = add_workers(&columns, sorted, cnt, err);
	if (error == 0)
		error = columns_localize(&columns, options, lend, sorted, ret, err);
	columns_done(&columns);
	free(sorted);
	return error;
}

int anysize_localize(const struct fingerprint *const *fps, size_t cnt,
		     const struct localize_options *options, size_t blame_max, struct report *ret,
		     struct err *err)
{
	return cnt <= MAX(blame_max, (size_t)1) ? localize(fps, cnt, options, ret, err)
						: localize_columns(fps, cnt, options, ret, err);
}
