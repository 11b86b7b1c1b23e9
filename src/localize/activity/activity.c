/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/activity/activity.h"

#include "localize/parts.h"
#include "model/usage/gpucall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOTALS_MAX 64 /* the longest are listed */

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

struct report_use activity_use(const struct fingerprint *fp, double iterations)
{
	const struct fp_usage *use = &fp->usage;
	double window = (double)fp->window_ns;
	struct report_use ret = { .launch_delay_us = (double)NAN };

	if (!use->known)
		return ret;
	ret = (struct report_use){
		.known = true,
		.busy_frac = share((double)use->busy_ns, window),
		.compute_frac = share((double)use->compute_ns, window),
		.comm_frac = share((double)use->comm_ns, window),
		.memory_frac = share((double)use->memory_ns, window),
		.comm_alone_frac = share((double)use->comm_alone_ns, window),
		.memory_alone_frac = share((double)use->memory_alone_ns, window),
		.starved_frac = share((double)use->starved_ns, window),
		.sync_loss_frac = share((double)use->sync_loss_ns, window),
		.launch_loss_frac = share((double)use->launch_loss_ns, window),
		.syncs = (double)use->sync_cnt / iterations,
		.kernels = (double)use->kernel_cnt / iterations,
		.short_frac = share((double)use->short_cnt, (double)use->kernel_cnt),
		.blocking_frac = share((double)use->blocking_cnt, (double)use->launched_cnt),
		.launch_delay_us = use->launch_delay_ns >= 0 ? (double)use->launch_delay_ns / 1e3
							     : (double)NAN,
	};
	for (size_t i = 0; i < fp->total_cnt; i++) {
		const struct fp_total *t = &fp->totals[i];

		if (t->kind != KIND_RUNTIME || !gpucall_is_memory(t->name))
			continue;
		ret.alloc_calls += (double)t->cnt / iterations;
		ret.alloc_ms += (double)t->total_ns / iterations / 1e6;
	}
	return ret;
}

double activity_idle_frac(const struct fingerprint *fp)
{
	if (fp->usage.known)
		return 1 - share((double)fp->usage.busy_ns, (double)fp->window_ns);
	return share((double)(fp->class_ns[CLASS_HOST] + fp->class_ns[CLASS_IDLE]),
		     (double)fp->window_ns);
}

/* A total of one worker, per iteration. */
struct row {
	struct report_total total;
	double bytes;
};

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->total.kind != y->total.kind)
		return x->total.kind < y->total.kind ? -1 : 1;
	return strcmp(x->total.name, y->total.name);
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->total.ms != y->total.ms)
		return x->total.ms < y->total.ms ? 1 : -1;
	return by_name(a, b);
}

static struct row row_of(const struct fp_total *t, double iterations)
{
	return (struct row){
		.total = { .name = t->name,
			   .kind = (enum event_kind)t->kind,
			   .class = (enum event_class)t->class,
			   .cnt = (double)t->cnt / iterations,
			   .ms = (double)t->total_ns / iterations / 1e6,
			   .idle_ms = (double)t->idle_ns / iterations / 1e6,
			   .longest_ms = (double)t->longest_ns / 1e6 },
		.bytes = t->bytes >= 0 ? (double)t->bytes / iterations : (double)NAN,
	};
}

/* Sums the rows of one name, which are beside each other. Returns how many are left. */
static size_t join_rows(struct row *rows, size_t cnt)
{
	size_t kept = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct row *last = kept > 0 ? &rows[kept - 1] : NULL;

		if (last == NULL || by_name(last, &rows[i]) != 0) {
			rows[kept++] = rows[i];
			continue;
		}
		last->total.cnt += rows[i].total.cnt;
		last->total.ms += rows[i].total.ms;
		last->total.idle_ms += rows[i].total.idle_ms;
		last->total.longest_ms = fmax(last->total.longest_ms, rows[i].total.longest_ms);
		last->bytes += rows[i].bytes;
	}
	return kept;
}

/* The rows of all workers that have GPUs; the caller frees. */
static struct row *all_rows(const struct job *job, size_t *ret_cnt, size_t *ret_workers)
{
	struct row *rows;
	size_t most = 0;

	*ret_cnt = *ret_workers = 0;
	for (size_t w = 0; w < job->worker_cnt; w++)
		most += job->workers[w].fp->total_cnt;
	rows = calloc(most + 1, sizeof(*rows));
	for (size_t w = 0; w < job->worker_cnt && rows != NULL; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		if (!fp->usage.known)
			continue;
		(*ret_workers)++;
		for (size_t i = 0; i < fp->total_cnt; i++)
			rows[(*ret_cnt)++] = row_of(&fp->totals[i], job->workers[w].iterations);
	}
	return rows;
}

int activity_totals(const struct job *job, struct report *out)
{
	size_t cnt, workers;
	_cleanup_free_ struct row *rows = all_rows(job, &cnt, &workers);
	struct report_total *list;

	if (rows == NULL)
		return -ENOMEM;
	qsort(rows, cnt, sizeof(*rows), by_name);
	cnt = join_rows(rows, cnt);
	qsort(rows, cnt, sizeof(*rows), by_time);
	cnt = MIN(cnt, (size_t)TOTALS_MAX);
	list = arena_calloc(&out->arena, cnt + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct report_total *t = &list[i];

		*t = rows[i].total;
		t->gbytes_per_s = t->kind == KIND_GPU_MEMOP && t->ms > 0
					  ? rows[i].bytes / t->ms / 1e6
					  : (double)NAN;
		t->cnt /= (double)workers;
		t->ms /= (double)workers;
		t->idle_ms /= (double)workers;
		t->name = parts_copy(out, t->name);
		if (t->name == NULL)
			return -ENOMEM;
	}
	out->totals = list;
	out->total_cnt = cnt;
	return 0;
}
