/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a simulated worker: compute before memory before communication before host.
 */
#include "simulate/direct_parts.h"

#include <errno.h>

uint32_t direct_kernel_unit(const struct maker *m, uint8_t kernel)
{
	/* One function: messages of a pipeline and exchanges use the same kernel. */
	if (kernel == KERNEL_PEER)
		kernel = KERNEL_EXCHANGE;
	return (uint32_t)m->sim->places.cnt + kernel;
}

uint8_t direct_unit_class(const struct maker *m, uint32_t unit)
{
	if (unit < m->sim->places.cnt)
		return CLASS_HOST;
	return kernel_text((enum kernel)(unit - m->sim->places.cnt))->class;
}

size_t direct_first_after(const struct segment *line, size_t cnt, int64_t time_ns)
{
	size_t low = 0, high = cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (line[mid].end_ns > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int charge(struct maker *m, uint32_t unit, int64_t start_ns, int64_t end_ns)
{
	m->fp->class_ns[direct_unit_class(m, unit)] += end_ns - start_ns;
	if (m->path.cnt > 0) {
		struct segment *last = &m->path.data[m->path.cnt - 1];

		if (last->unit == unit && last->end_ns == start_ns) {
			last->end_ns = end_ns;
			return 0;
		}
	}
	return vec_push(&m->path, (struct segment){ start_ns, end_ns, unit });
}

/* Collectives that run at once share the path; each of their functions holds it. */
static int charge_comm(struct maker *m, const struct span *const *active, size_t cnt,
		       int64_t start_ns, int64_t end_ns)
{
	for (size_t i = 0; i < cnt; i++) {
		struct unit *u = &m->units[direct_kernel_unit(m, active[i]->kernel)];
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &= direct_kernel_unit(m, active[k]->kernel) !=
				 direct_kernel_unit(m, active[i]->kernel);
		u->share_ns += (end_ns - start_ns) / (int64_t)cnt;
		u->critical_ns += first ? end_ns - start_ns : 0;
	}
	return charge(m, direct_kernel_unit(m, active[0]->kernel), start_ns, end_ns);
}

static int charge_one(struct maker *m, uint32_t unit, int64_t start_ns, int64_t end_ns)
{
	m->units[unit].share_ns += end_ns - start_ns;
	m->units[unit].critical_ns += end_ns - start_ns;
	return charge(m, unit, start_ns, end_ns);
}

/* The next work of the compute stream, in order, starting at *at. */
static const struct span *next_work(const struct maker *m, size_t *at)
{
	for (; *at < m->record.spans.cnt; (*at)++) {
		if (m->record.spans.data[*at].stream == STREAM_COMPUTE)
			return &m->record.spans.data[*at];
	}
	return NULL;
}

#define ACTIVE_MAX 64

struct sweep {
	size_t work, comm; /* index of the next one in each list */
	const struct span *active[ACTIVE_MAX];
	size_t active_cnt;
};

static void update_active(struct maker *m, struct sweep *s, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->active_cnt; i++) {
		if (s->active[i]->end_ns > now_ns)
			s->active[kept++] = s->active[i];
	}
	for (; s->comm < m->comm.cnt && m->comm.data[s->comm]->start_ns <= now_ns; s->comm++) {
		if (m->comm.data[s->comm]->end_ns > now_ns && kept < ACTIVE_MAX)
			s->active[kept++] = m->comm.data[s->comm];
	}
	s->active_cnt = kept;
}

/* The time until which nothing begins or ends. */
static int64_t quiet_until(const struct maker *m, const struct sweep *s, int64_t until_ns)
{
	for (size_t i = 0; i < s->active_cnt; i++)
		until_ns = MIN(until_ns, s->active[i]->end_ns);
	if (s->comm < m->comm.cnt)
		until_ns = MIN(until_ns, m->comm.data[s->comm]->start_ns);
	return until_ns;
}

static int sweep_leaf(struct maker *m, struct sweep *s, const struct leaf *leaf)
{
	int64_t now = MAX(leaf->start_ns, m->start_ns), end = MIN(leaf->end_ns, m->end_ns);
	uint32_t place = m->record.frames.data[leaf->frame].place;
	int error = 0;

	while (now < end && error == 0) {
		const struct span *work = next_work(m, &s->work);
		int64_t until = end;

		if (work != NULL && work->end_ns <= now) {
			s->work++;
			continue;
		}
		if (work != NULL && work->start_ns <= now) {
			until = MIN(until, work->end_ns);
			error = charge_one(m, direct_kernel_unit(m, work->kernel), now, until);
			now = until;
			continue;
		}
		update_active(m, s, now);
		until = quiet_until(m, s, work != NULL ? MIN(until, work->start_ns) : until);
		error = s->active_cnt > 0 ? charge_comm(m, s->active, s->active_cnt, now, until)
					  : charge_one(m, place, now, until);
		now = until;
	}
	return error;
}

static int span_cmp(const void *a, const void *b)
{
	const struct span *x = *(const struct span *const *)a;
	const struct span *y = *(const struct span *const *)b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->launch_ns > y->launch_ns) - (x->launch_ns < y->launch_ns);
}

int direct_find_path(struct maker *m)
{
	struct sweep s = { 0 };
	int error = 0;

	vec_foreach(span, &m->record.spans) {
		if (span->stream != STREAM_COMPUTE && span->end_ns > m->start_ns &&
		    span->start_ns < m->end_ns && error == 0)
			error = vec_push(&m->comm, span);
	}
	if (m->comm.cnt > 0)
		qsort(m->comm.data, m->comm.cnt, sizeof(*m->comm.data), span_cmp);
	for (size_t i = 0; i < m->record.leaves.cnt && error == 0; i++)
		error = sweep_leaf(m, &s, &m->record.leaves.data[i]);
	return error;
}
