/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/absences.h"

#include "base/vec.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

typedef VEC(struct fp_absence) absence_vec;

static bool uses_devices(const struct job *job)
{
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (job->workers[w].fp->has_device)
			return true;
	}
	return false;
}

/* --- samples that no worker has --- */

static const struct {
	enum resource resource, substitute; /* what serves as well */
	bool device, host;
} wanted[] = {
	{ RESOURCE_SM_ACTIVE, RESOURCE_SM_ACTIVE, true, false },
	{ RESOURCE_NVLINK_TX, RESOURCE_NVLINK_TX, true, false },
	{ RESOURCE_NIC_TX, RESOURCE_SOCKET_TX, true, true },
	{ RESOURCE_CPU_THREAD, RESOURCE_CPU_THREAD, true, true },
};

static size_t list_resources(const struct job *job, struct report_absence *ret)
{
	bool device = uses_devices(job);
	uint32_t present = 0;
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		present |= job->workers[w].fp->resources;
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && job->worker_cnt > 0; i++) {
		if ((present & (1u << wanted[i].resource | 1u << wanted[i].substitute)) == 0 &&
		    (device ? wanted[i].device : wanted[i].host))
			ret[cnt++] = (struct report_absence){ resource_name(wanted[i].resource),
							      "not recorded" };
	}
	return cnt;
}

/* --- samples that are too coarse --- */

static const enum resource of_devices[] = { RESOURCE_SM_ACTIVE, RESOURCE_DRAM, RESOURCE_NVLINK_TX,
					    RESOURCE_PCIE_TX, RESOURCE_PCIE_RX };

/* A function without deviation is shorter than its samples are apart (summarize/utilize.h). */
static bool is_coarse(const struct job *job, enum resource resource)
{
	double whole_ns = 0, coarse_ns = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		for (size_t i = 0; i < fp->function_cnt; i++) {
			const struct fp_function *f = &fp->functions[i];

			if (f->resource != resource || isnan(f->mu_frac))
				continue;
			whole_ns += (double)f->critical_ns;
			coarse_ns += isnan(f->sigma_frac) ? (double)f->critical_ns : 0;
		}
	}
	return coarse_ns > MEASURED_MOST * whole_ns;
}

static size_t list_coarse(const struct job *job, struct report_absence *ret)
{
	size_t cnt = 0;

	for (size_t i = 0; i < ARRAY_SIZE(of_devices); i++) {
		if (is_coarse(job, of_devices[i]))
			ret[cnt++] = (struct report_absence){
				resource_name(of_devices[i]),
				"samples are further apart than functions are long: utilization is "
				"of all that ran then, the deviation is unknown"
			};
	}
	return cnt;
}

/* --- counters of GPUs --- */

static int by_reason(const void *a, const void *b)
{
	const struct fp_absence *x = a, *y = b;
	int order = strcmp(x->why, y->why);

	return order != 0 ? order : (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

/* An absence of several workers or hosts is reported once. */
static int collect_gpus(const struct job *job, absence_vec *ret)
{
	size_t kept = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		for (size_t i = 0; i < fp->absence_cnt; i++) {
			if (vec_push(ret, fp->absences[i]) < 0)
				return -ENOMEM;
		}
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_reason);
	for (size_t i = 0; i < ret->cnt; i++) {
		if (kept == 0 || by_reason(&ret->data[kept - 1], &ret->data[i]) != 0)
			ret->data[kept++] = ret->data[i];
	}
	ret->cnt = kept;
	return 0;
}

/* GPUs list[first .. end), which follow each other. */
static int tell_gpus(struct arena *arena, const struct fp_absence *first,
		     const struct fp_absence *last, struct report_absence *ret)
{
	ret->why = arena_strdup(arena, first->why);
	if (first->gpu < 0)
		ret->source = "GPUs";
	else if (first == last)
		ret->source = arena_printf(arena, "counters of GPU %d", first->gpu);
	else
		ret->source = arena_printf(arena, "counters of GPU %d-%d", first->gpu, last->gpu);
	return ret->source == NULL || ret->why == NULL ? -ENOMEM : 0;
}

static int list_gpus(const absence_vec *gpus, struct report *out, struct report_absence *list)
{
	size_t listed = 0;
	int ret = 0;

	for (size_t i = 0, end; i < gpus->cnt && listed < ABSENCES_GPU_MAX && ret == 0; i = end) {
		const struct fp_absence *first = &gpus->data[i];

		for (end = i + 1; end < gpus->cnt && first->gpu >= 0 &&
				  gpus->data[end].gpu == gpus->data[end - 1].gpu + 1 &&
				  strcmp(gpus->data[end].why, first->why) == 0;)
			end++;
		ret = tell_gpus(&out->arena, first, &gpus->data[end - 1],
				&list[out->absence_cnt + listed++]);
	}
	out->absence_cnt += listed;
	return ret;
}

int absences_list(const struct job *job, struct report *out)
{
	struct report_absence *list = arena_calloc(
		&out->arena, ARRAY_SIZE(wanted) + ARRAY_SIZE(of_devices) + ABSENCES_GPU_MAX,
		sizeof(*list));
	absence_vec gpus = { 0 };
	int ret = 0;

	if (list == NULL)
		return -ENOMEM;
	out->absences = list;
	out->absence_cnt = list_resources(job, list);
	out->absence_cnt += list_coarse(job, list + out->absence_cnt);
	if (uses_devices(job))
		ret = collect_gpus(job, &gpus);
	if (ret == 0)
		ret = list_gpus(&gpus, out, list);
	vec_done(&gpus);
	return ret;
}
