/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations, and collectives with what led to them. Starts and ends are rounded
 * down to one grid, so that what did not overlap does not overlap afterwards.
 */
#include "center/wire/fpwire_walk.h"

#include <errno.h>

#define TICKS_PER_ITERATION 4096 /* at least */
#define US 1000
#define LEAD_ERROR 2048 /* a lead is not spelt out when its shares say it that well */

/* --- iterations --- */

/* The coarsest tick, as a power of two, that the mean iteration has enough of. */
static uint64_t tick_shift(const struct fp_iteration *list, size_t cnt)
{
	int64_t mean_ns = 0;

	for (size_t i = 0; i < cnt; i++)
		mean_ns += list[i].dur_ns / (int64_t)cnt;
	if (mean_ns < TICKS_PER_ITERATION)
		return 0;
	return 63u - (unsigned)__builtin_clzll((uint64_t)mean_ns / TICKS_PER_ITERATION);
}

static bool counts_up(const struct fp_iteration *list, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		if ((uint64_t)list[i].number != (uint64_t)list[i - 1].number + 1)
			return false;
	}
	return true;
}

/* prev_end: in ticks, of the iteration before; updated. */
static void wire_iteration(struct wire *w, struct fp_iteration *it, uint64_t shift,
			   int64_t *prev_end)
{
	int64_t begin = it->start_ns >> shift, limit = FPWIRE_TIME_MAX >> shift;
	uint64_t length = (uint64_t)(((it->start_ns + it->dur_ns) >> shift) - begin);

	wire_within(w, &begin, *prev_end, -limit, limit, "a time in the window");
	wire_uint(w, &length, (uint64_t)limit, "a duration");
	*prev_end = begin + (int64_t)length;
	it->start_ns = begin * (1LL << shift);
	it->dur_ns = (int64_t)(length << shift);
}

/* Those of one worker, list[cnt]; first: the first number of the worker before, updated. */
static void walk_iterations(struct wire *w, struct fp_iteration *list, size_t cnt, int64_t *first)
{
	uint64_t head = tick_shift(list, cnt) << 1 | counts_up(list, cnt), shift;
	int64_t next = *first, prev_end = 0;

	wire_uint(w, &head, 2 * 60 + 1, "a tick");
	shift = head >> 1;
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		if (i == 0 || (head & 1) == 0)
			wire_near(w, &list[i].number, next);
		else
			list[i].number = next;
		next = (int64_t)((uint64_t)list[i].number + 1);
		wire_iteration(w, &list[i], shift, &prev_end);
	}
	if (cnt > 0)
		*first = list[0].number;
}

void wire_iterations(struct wire *w, struct fpwire *m)
{
	size_t done = 0;
	int64_t first = 0;

	vec_foreach(x, &m->workers) {
		size_t cnt = x->fp.iteration_cnt;

		wire_cnt(w, &cnt, 2, "a number of iterations");
		wire_resize(w, &m->iterations, done + cnt);
		if (w->error != 0)
			return;
		if (cnt > 0)
			walk_iterations(w, m->iterations.data + done, cnt, &first);
		x->fp.iteration_cnt = cnt;
		done += cnt;
	}
}

/* --- kinds of collectives --- */

int fpwire_kind_cmp(const void *a, const void *b)
{
	const struct fpwire_kind *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->group_size != y->group_size)
		return x->group_size < y->group_size ? -1 : 1;
	if (x->group_known != y->group_known)
		return x->group_known < y->group_known ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

size_t fpwire_kind_find(const struct fpwire *m, const struct fp_collective *c)
{
	struct fpwire_kind key = { .group = c->group,
				   .name = c->name,
				   .bytes = c->bytes,
				   .group_size = c->group_size,
				   .group_known = c->group_known };
	const struct fpwire_kind *found =
		bsearch(&key, m->kinds.data, m->kinds.cnt, sizeof(key), fpwire_kind_cmp);

	return found != NULL ? (size_t)(found - m->kinds.data) : 0;
}

enum { KIND_SAME_GROUP = 1, KIND_SAME_NAME = 2, KIND_KNOWN = 4 };

static void wire_kind(struct wire *w, struct fpwire_kind *k, const struct fpwire_kind *prev)
{
	uint8_t flags = (uint8_t)((k->group == prev->group ? KIND_SAME_GROUP : 0) |
				  (k->name == prev->name ? KIND_SAME_NAME : 0) |
				  (k->group_known ? KIND_KNOWN : 0));
	uint64_t size = (uint64_t)k->group_size;

	wire_byte(w, &flags);
	if (w->error == 0 && flags > 7)
		wire_fail(w, "known flags", flags);
	k->group = (flags & KIND_SAME_GROUP) != 0 ? prev->group : k->group;
	k->name = (flags & KIND_SAME_NAME) != 0 ? prev->name : k->name;
	if ((flags & KIND_SAME_GROUP) == 0)
		wire_u64(w, &k->group);
	if ((flags & KIND_SAME_NAME) == 0)
		wire_u64(w, &k->name);
	k->group_known = (flags & KIND_KNOWN) != 0;
	wire_uint(w, &size, INT32_MAX, "a group size");
	k->group_size = (int32_t)size;
	wire_near(w, &k->bytes, -1);
}

static void wire_kinds(struct wire *w, struct fpwire *m)
{
	struct fpwire_kind none = { 0 };
	size_t cnt = m->kinds.cnt;

	wire_cnt(w, &cnt, 3, "a number of kinds");
	wire_resize(w, &m->kinds, cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++) {
		struct fpwire_kind *k = &m->kinds.data[i];
		const struct fpwire_kind *prev = i > 0 ? k - 1 : &none;

		wire_kind(w, k, prev);
		k->leader = i > 0 && k->group == prev->group ? prev->leader : (uint32_t)i;
		k->worker = UINT32_MAX;
	}
}

/* --- collectives --- */

/* Where the walk is: the worker, its shares so far, the collective before. */
struct calls {
	struct fpwire *m;
	uint32_t worker;
	size_t row_cnt;
	size_t share_base;
	uint32_t share_cnt;
	int64_t prev_us;
};

enum {
	CALL_GATED = 1,	      /* host_gated */
	CALL_SEQ = 2,	      /* its number is not the next of its group */
	CALL_CRITICAL = 4,    /* critical_ns is not dur_ns */
	CALL_LEAD = 8,	      /* lead_ns is not the sum of its shares */
	CALL_HOST = 16,	      /* the same for host_ns */
	CALL_HOST_SHARES = 32 /* the launching thread's shares are not those of the path */
};

static int64_t floor_us(int64_t ns)
{
	return ns / US - (ns % US < 0);
}

static int64_t sum_of(const struct calls *at, uint32_t first, uint32_t cnt)
{
	const struct fp_share *shares = at->m->shares.data + at->share_base + first;
	int64_t sum = 0;

	for (uint32_t i = 0; i < cnt; i++)
		sum = MIN(sum + shares[i].ns, (int64_t)FPWIRE_TIME_MAX);
	return sum;
}

static bool said_by_sum(int64_t ns, int64_t sum)
{
	return llabs(ns - sum) <= ns / LEAD_ERROR;
}

/* The number that the next collective of a group should have. */
static int64_t next_seq(const struct calls *at, const struct fpwire_kind *k)
{
	const struct fpwire_kind *leader = &at->m->kinds.data[k->leader];

	if (leader->worker != at->worker || leader->seq < 0)
		return -1;
	return leader->seq < INT64_MAX ? leader->seq + 1 : -1;
}

static uint8_t call_flags(const struct calls *at, const struct fpwire_kind *k,
			  const struct fp_collective *c)
{
	bool own = c->host_first != c->lead_first || c->host_cnt != c->lead_cnt;
	int64_t lead = sum_of(at, c->lead_first, c->lead_cnt);
	int64_t host = sum_of(at, c->host_first, c->host_cnt);

	return (uint8_t)((c->host_gated ? CALL_GATED : 0) |
			 (c->seq != next_seq(at, k) ? CALL_SEQ : 0) |
			 (c->critical_ns != c->dur_ns ? CALL_CRITICAL : 0) |
			 (said_by_sum(c->lead_ns, lead) ? 0 : CALL_LEAD) |
			 (said_by_sum(c->host_ns, host) ? 0 : CALL_HOST) |
			 (own ? CALL_HOST_SHARES : 0));
}

static void wire_times(struct wire *w, struct fp_collective *c, uint8_t flags, int64_t *prev_us)
{
	int64_t begin = floor_us(c->start_ns), limit = FPWIRE_TIME_MAX / US;
	uint64_t length = (uint64_t)(floor_us(c->start_ns + c->dur_ns) - begin);

	wire_within(w, &begin, *prev_us, -limit, limit, "a time in the window");
	wire_uint(w, &length, (uint64_t)limit, "a duration");
	*prev_us = begin;
	c->start_ns = begin * US;
	c->dur_ns = (int64_t)length * US;
	if ((flags & CALL_CRITICAL) != 0)
		wire_time(w, &c->critical_ns);
	else
		c->critical_ns = c->dur_ns;
}

static void wire_share(struct wire *w, struct fp_share *s, size_t row_cnt)
{
	uint64_t row = s->function == FRAME_NONE ? 0 : s->function + 1ULL;
	int64_t ns = s->ns; /* the struct is packed */

	wire_uint(w, &row, row_cnt, "a function of the worker");
	s->function = row == 0 ? FRAME_NONE : (uint32_t)row - 1;
	wire_time(w, &ns);
	s->ns = ns;
}

static void wire_shares(struct wire *w, struct calls *at, uint32_t *first, uint32_t *ret_cnt)
{
	size_t cnt = *ret_cnt, begin = at->share_base + at->share_cnt;

	wire_cnt(w, &cnt, 3, "a number of shares");
	wire_resize(w, &at->m->shares, begin + cnt);
	for (size_t i = 0; i < cnt && w->error == 0; i++)
		wire_share(w, &at->m->shares.data[begin + i], at->row_cnt);
	*first = at->share_cnt;
	*ret_cnt = (uint32_t)cnt;
	at->share_cnt += (uint32_t)cnt;
}

static void wire_leads(struct wire *w, struct calls *at, struct fp_collective *c, uint8_t flags)
{
	wire_shares(w, at, &c->lead_first, &c->lead_cnt);
	if ((flags & CALL_HOST_SHARES) != 0) {
		wire_shares(w, at, &c->host_first, &c->host_cnt);
	} else {
		c->host_first = c->lead_first;
		c->host_cnt = c->lead_cnt;
	}
	if (w->error != 0)
		return;
	if ((flags & CALL_LEAD) != 0)
		wire_time(w, &c->lead_ns);
	else
		c->lead_ns = sum_of(at, c->lead_first, c->lead_cnt);
	if ((flags & CALL_HOST) != 0)
		wire_time(w, &c->host_ns);
	else
		c->host_ns = sum_of(at, c->host_first, c->host_cnt);
}

static void wire_collective(struct wire *w, struct calls *at, struct fp_collective *c)
{
	struct fpwire *m = at->m;
	uint64_t kind = wire_reads(w) ? 0 : fpwire_kind_find(m, c);
	struct fpwire_kind *k;
	uint8_t flags = 0, known = m->detail == FPWIRE_LEADS ? 63 : 7;

	wire_uint(w, &kind, m->kinds.cnt > 0 ? m->kinds.cnt - 1 : 0, "a kind of collective");
	if (w->error == 0 && m->kinds.cnt == 0)
		wire_fail(w, "a kind of collective", kind);
	if (w->error != 0)
		return;
	k = &m->kinds.data[kind];
	if (!wire_reads(w))
		flags = call_flags(at, k, c);
	wire_byte(w, &flags);
	if (w->error == 0 && (flags & ~known) != 0)
		wire_fail(w, "known flags", flags);
	if ((flags & CALL_SEQ) != 0)
		wire_near(w, &c->seq, next_seq(at, k));
	else
		c->seq = next_seq(at, k);
	m->kinds.data[k->leader].worker = at->worker;
	m->kinds.data[k->leader].seq = c->seq;
	c->group = k->group;
	c->name = k->name;
	c->bytes = k->bytes;
	c->group_size = k->group_size;
	c->group_known = k->group_known;
	c->host_gated = (flags & CALL_GATED) != 0;
	wire_times(w, c, flags, &at->prev_us);
	if (m->detail == FPWIRE_LEADS)
		wire_leads(w, at, c, flags);
}

void wire_collectives(struct wire *w, struct fpwire *m)
{
	struct calls at = { .m = m };
	size_t done = 0;

	wire_kinds(w, m);
	for (size_t i = 0; i < m->workers.cnt && w->error == 0; i++) {
		struct fpwire_worker *x = &m->workers.data[i];
		size_t cnt = x->fp.collective_cnt;

		wire_cnt(w, &cnt, 4, "a number of collectives");
		wire_resize(w, &m->collectives, done + cnt);
		at = (struct calls){ m, (uint32_t)i, x->cnt, at.share_base + at.share_cnt, 0, 0 };
		for (size_t k = 0; k < cnt && w->error == 0; k++)
			wire_collective(w, &at, &m->collectives.data[done + k]);
		x->fp.collective_cnt = cnt;
		x->fp.share_cnt = at.share_cnt;
		done += cnt;
	}
}
