/* SPDX-License-Identifier: Apache-2.0 */
#include "center/anysize.h"

#include "center/columns/columns_report.h"
#include "localize/parts.h"
#include "localize/pictures/origin.h"

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
	const struct fingerprint **sorted = NULL;
	struct columns columns = { 0 };
	int error = parts_sort_workers(fps, cnt, &sorted, err);

	if (error == 0)
		error = add_workers(&columns, sorted, cnt, err);
	if (error == 0)
		error = columns_localize(&columns, options, lend, sorted, ret, err);
	if (error == 0 && origin_fill(sorted, cnt, ret) < 0) {
		report_done(ret);
		error = err_set(err, ENOMEM, "out of memory");
	}
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
