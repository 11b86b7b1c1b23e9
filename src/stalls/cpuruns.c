/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/cpuruns.h"

static int compare(const void *a, const void *b)
{
	const struct cpurun *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

int cpuruns_make(struct cpuruns *runs, const struct stall_recording *recording)
{
	*runs = (struct cpuruns){ .end_ns = recording->end_ns };
	vec_foreach(event, &recording->events) {
		const struct cpurun run = { event->time_ns, event->cpu, event->pid, event->tid };

		if (event->kind != STALL_RUN || event->cpu >= CPURUNS_CPUS_MAX)
			continue;
		const int error = vec_push(&runs->list, run);

		if (error < 0)
			return error;
	}
	if (runs->list.cnt > 0)
		qsort(runs->list.data, runs->list.cnt, sizeof(*runs->list.data), compare);
	return 0;
}

void cpuruns_done(struct cpuruns *runs)
{
	vec_done(&runs->list);
}

/* The first run behind that time. */
static size_t find_behind(const struct cpuruns *runs, uint32_t cpu, int64_t time_ns)
{
	const struct cpurun key = { .cpu = cpu, .begin_ns = time_ns };
	size_t low = 0, high = runs->list.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&runs->list.data[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t cpuruns_usage(const struct cpuruns *runs, const struct cpuruns_query *query,
		      int (*add)(void *context, uint32_t pid, int64_t ns), void *context,
		      int *ret_error)
{
	size_t i = find_behind(runs, query->cpu, query->begin_ns);
	int64_t known_ns = 0;

	*ret_error = 0;
	if (i > 0 && runs->list.data[i - 1].cpu == query->cpu)
		i--;
	for (; i < runs->list.cnt && *ret_error == 0; i++) {
		const struct cpurun *run = &runs->list.data[i];
		const bool last = i + 1 == runs->list.cnt || run[1].cpu != query->cpu;
		const int64_t begin = MAX(run->begin_ns, query->begin_ns),
			      end = MIN(last ? runs->end_ns : run[1].begin_ns, query->end_ns);

		if (run->cpu != query->cpu || run->begin_ns >= query->end_ns)
			break;
		if (end <= begin || (run->pid != 0 && run->tid == query->but))
			continue;
		known_ns += end - begin;
		*ret_error = add(context, run->pid, end - begin);
	}
	return known_ns;
}
