/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of a simulated worker, and the functions that ran before each. */
#include "simulate/direct_parts.h"
#include "simulate/network.h"
#include "simulate/random.h"

#include <errno.h>
#include <string.h>

#define LEAD_SHARES 24 /* functions listed before a collective, as in summarize */
/* A collective that begins this soon after its launch waited for the launch. */
#define GATE_NS 300000

static int share_cmp(const void *a, const void *b)
{
	const struct fp_share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->function > y->function) - (x->function < y->function);
}

/* Sums time by function within [start, end) into lead_ns; functions not listed go to the rest. */
static int sum_lead(struct maker *m, const struct segment *line, size_t cnt, int64_t start_ns,
		    int64_t end_ns, int64_t *ret_rest_ns)
{
	*ret_rest_ns = 0;
	m->lead_used.cnt = 0;
	for (size_t i = direct_first_after(line, cnt, start_ns);
	     i < cnt && line[i].start_ns < end_ns; i++) {
		uint32_t function = m->units[line[i].unit].function;
		int64_t ns = MIN(line[i].end_ns, end_ns) - MAX(line[i].start_ns, start_ns);

		if (function == FRAME_NONE) {
			*ret_rest_ns += ns;
			continue;
		}
		if (m->lead_ns[function] == 0 && vec_push(&m->lead_used, function) < 0)
			return -ENOMEM;
		m->lead_ns[function] += ns;
	}
	return 0;
}

static int add_lead(struct maker *m, const struct segment *line, size_t cnt, int64_t start_ns,
		    int64_t end_ns, uint32_t *ret_first, uint32_t *ret_cnt)
{
	size_t first = m->shares.cnt;
	int64_t rest_ns;
	int error = sum_lead(m, line, cnt, start_ns, end_ns, &rest_ns);

	vec_foreach(f, &m->lead_used) {
		if (error == 0)
			error = vec_push(&m->shares, (struct fp_share){ *f, m->lead_ns[*f] });
		m->lead_ns[*f] = 0;
	}
	if (error < 0)
		return error;
	if (m->shares.cnt > first)
		qsort(m->shares.data + first, m->shares.cnt - first, sizeof(struct fp_share),
		      share_cmp);
	for (; m->shares.cnt > first + LEAD_SHARES; m->shares.cnt--)
		rest_ns += m->shares.data[m->shares.cnt - 1].ns;
	if (rest_ns > 0)
		error = vec_push(&m->shares, (struct fp_share){ FRAME_NONE, rest_ns });
	*ret_first = (uint32_t)first;
	*ret_cnt = (uint32_t)(m->shares.cnt - first);
	return error;
}

static struct fp_collective collective_of(const struct maker *m, const struct span *span)
{
	struct meeting_id id = player_meeting(m->sim, m->rank, span);

	return (struct fp_collective){
		.group = random_mix((uint64_t)id.kind << 32 | id.group.index),
		.name = random_mix(direct_kernel_unit(m, span->kernel)),
		.seq = -1,
		.start_ns = span->start_ns - m->start_ns,
		.dur_ns = span->end_ns - span->start_ns,
		.bytes = (int64_t)network_bytes(m->sim, &id.group, span->ms),
		.group_size = id.group.size,
		.group_known = true,
		.host_gated = span->start_ns - span->launch_ns < GATE_NS,
	};
}

/* Part of a span on the critical path, where no compute runs. */
static int64_t critical_part(const struct maker *m, const struct span *span)
{
	int64_t sum = 0;

	for (size_t i = direct_first_after(m->path.data, m->path.cnt, span->start_ns);
	     i < m->path.cnt && m->path.data[i].start_ns < span->end_ns; i++) {
		if (direct_unit_class(m, m->path.data[i].unit) == CLASS_COMM)
			sum += MIN(m->path.data[i].end_ns, span->end_ns) -
			       MAX(m->path.data[i].start_ns, span->start_ns);
	}
	return sum;
}

static int add_collective(struct maker *m, const struct span *span)
{
	struct group_state *group = &m->groups[span->group];
	struct fp_collective c = collective_of(m, span);
	/*
	 * While the previous collective still runs, the lead begins at its start, not at its end.
	 */
	int64_t lead = group->end_ns <= span->start_ns ? group->end_ns : group->start_ns;
	int error;

	c.critical_ns = critical_part(m, span);
	c.lead_ns = MAX(span->start_ns - lead, (int64_t)0);
	c.host_ns = MAX(span->launch_ns - group->launch_ns, (int64_t)0);
	error = add_lead(m, m->path.data, m->path.cnt, lead, span->start_ns, &c.lead_first,
			 &c.lead_cnt);
	if (error == 0)
		error = add_lead(m, m->leads.data, m->leads.cnt, group->launch_ns, span->launch_ns,
				 &c.host_first, &c.host_cnt);
	*group = (struct group_state){ MAX(span->start_ns, m->start_ns),
				       MAX(group->end_ns, span->end_ns),
				       MAX(group->launch_ns, span->launch_ns) };
	m->fp->collectives[m->fp->collective_cnt++] = c;
	return error;
}

int direct_add_collectives(struct maker *m)
{
	struct fingerprint *fp = m->fp;
	int error = 0;

	for (int k = 0; k < GROUP_KIND_CNT; k++)
		m->groups[k] = (struct group_state){ m->start_ns, m->start_ns, m->start_ns };
	vec_foreach(l, &m->record.leaves) {
		if (vec_push(&m->leads, (struct segment){ l->start_ns, l->end_ns,
							  m->record.frames.data[l->frame].place }) <
		    0)
			return -ENOMEM;
	}
	m->lead_ns = arena_calloc(&fp->arena, fp->function_cnt + 1, sizeof(*m->lead_ns));
	fp->collectives = arena_calloc(&fp->arena, m->comm.cnt + 1, sizeof(*fp->collectives));
	if (fp->collectives == NULL || m->lead_ns == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->comm.cnt && error == 0; i++) {
		if (m->comm.data[i]->group != GROUP_KIND_CNT)
			error = add_collective(m, m->comm.data[i]);
	}
	fp->shares = arena_calloc(&fp->arena, m->shares.cnt + 1, sizeof(*fp->shares));
	if (error < 0 || fp->shares == NULL)
		return -ENOMEM;
	if (m->shares.cnt > 0)
		memcpy(fp->shares, m->shares.data, m->shares.cnt * sizeof(*fp->shares));
	fp->share_cnt = m->shares.cnt;
	return 0;
}
