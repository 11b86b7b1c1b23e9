/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/critpath.h"

#include <errno.h>
#include <string.h>

/* The executions that run now, per class, longest running first. */
typedef VEC(uint32_t) active_list;

struct sweep {
	struct crit_exec *execs;
	active_list active[CLASS_CNT];
	struct critpath *out;
	struct idmap time_of;  /* (node, class) -> index in out->times */
	VEC(uint64_t) charged; /* by index in out->times: the stretch that was charged last */
	uint64_t stretch;
};

void critpath_done(struct critpath *path)
{
	vec_done(&path->segments);
	vec_done(&path->times);
}

static struct crit_time *time_of(struct sweep *s, uint32_t node, uint8_t class)
{
	uint64_t key = (uint64_t)node << 8 | class;
	uint32_t idx = idmap_get(&s->time_of, key);

	if (idx != IDMAP_NONE)
		return &s->out->times.data[idx];
	idx = (uint32_t)s->out->times.cnt;
	if (vec_push(&s->out->times, (struct crit_time){ .node = node, .class = class }) < 0 ||
	    vec_push(&s->charged, 0) < 0 || idmap_set(&s->time_of, key, idx) < 0)
		return NULL;
	return &s->out->times.data[idx];
}

static int add_segment(struct sweep *s, int64_t start_ns, int64_t end_ns, uint32_t node,
		       uint8_t class)
{
	crit_segments *segs = &s->out->segments;
	struct crit_segment *last = segs->cnt > 0 ? &segs->data[segs->cnt - 1] : NULL;

	s->out->class_ns[class] += end_ns - start_ns;
	if (last != NULL && last->node == node && last->class == class &&
	    last->end_ns == start_ns) {
		last->end_ns = end_ns;
		return 0;
	}
	return vec_push(segs, (struct crit_segment){ start_ns, end_ns, node, class });
}

/* A function that runs twice at once holds the path once. */
static bool charge_first(struct sweep *s, const struct crit_time *t)
{
	uint64_t *charged = &s->charged.data[t - s->out->times.data];

	if (*charged == s->stretch)
		return false;
	*charged = s->stretch;
	return true;
}

/* [start, end) belongs to the executions of one class. */
static int charge_execs(struct sweep *s, const active_list *list, uint8_t class, int64_t start_ns,
			int64_t end_ns)
{
	int64_t length = end_ns - start_ns, left = length, each;

	s->stretch++;
	each = length / (int64_t)list->cnt;
	for (size_t i = 0; i < list->cnt; i++) {
		struct crit_exec *exec = &s->execs[list->data[i]];
		struct crit_time *t = time_of(s, exec->node, class);

		if (t == NULL)
			return -ENOMEM;
		exec->critical_ns += length;
		t->share_ns += i + 1 < list->cnt ? each : left;
		left -= each;
		if (charge_first(s, t))
			t->critical_ns += length;
	}
	return add_segment(s, start_ns, end_ns, s->execs[list->data[0]].node, class);
}

static int charge_host(struct sweep *s, const struct host_segment *host, int64_t start_ns,
		       int64_t end_ns)
{
	struct crit_time *t = time_of(s, host->node, host->class);

	if (t == NULL)
		return -ENOMEM;
	t->share_ns += end_ns - start_ns;
	t->critical_ns += end_ns - start_ns;
	return add_segment(s, start_ns, end_ns, host->node, host->class);
}

static int charge(struct sweep *s, const struct host_segment *host, int64_t start_ns,
		  int64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	for (int class = CLASS_CNT - 1; class > CLASS_IDLE; class --) {
		if (s->active[class].cnt > 0 && class >= host->class)
			return charge_execs(s, &s->active[class], (uint8_t) class, start_ns,
					    end_ns);
		if (class == host->class)
			break;
	}
	return charge_host(s, host, start_ns, end_ns);
}

static void active_remove_ended(struct sweep *s, int64_t now_ns)
{
	for (int class = 0; class < CLASS_CNT; class ++) {
		active_list *list = &s->active[class];
		size_t kept = 0;

		for (size_t i = 0; i < list->cnt; i++) {
			if (s->execs[list->data[i]].end_ns > now_ns)
				list->data[kept++] = list->data[i];
		}
		list->cnt = kept;
	}
}

static int64_t active_next_end(const struct sweep *s)
{
	int64_t next = INT64_MAX;

	for (int class = 0; class < CLASS_CNT; class ++) {
		for (size_t i = 0; i < s->active[class].cnt; i++)
			next = MIN(next, s->execs[s->active[class].data[i]].end_ns);
	}
	return next;
}

static int sweep_segment(struct sweep *s, size_t exec_cnt, const struct host_segment *host,
			 size_t *next_exec)
{
	int64_t now = host->start_ns;

	while (now < host->end_ns) {
		int64_t until = host->end_ns;
		int error;

		active_remove_ended(s, now);
		while (*next_exec < exec_cnt && s->execs[*next_exec].start_ns <= now) {
			const struct crit_exec *e = &s->execs[*next_exec];

			if (e->end_ns > now &&
			    vec_push(&s->active[e->class], (uint32_t)*next_exec) < 0)
				return -ENOMEM;
			(*next_exec)++;
		}
		until = MIN(until, active_next_end(s));
		if (*next_exec < exec_cnt)
			until = MIN(until, s->execs[*next_exec].start_ns);
		error = charge(s, host, now, until);
		if (error < 0)
			return error;
		now = until;
	}
	return 0;
}

int critpath_find(struct crit_exec *execs, size_t exec_cnt, const host_segments *host,
		  struct critpath *ret)
{
	struct critpath path = { 0 };
	struct sweep s = { .execs = execs, .out = &path };
	size_t next_exec = 0;
	int error = 0;

	for (size_t i = 0; i < host->cnt && error == 0; i++)
		error = sweep_segment(&s, exec_cnt, &host->data[i], &next_exec);
	for (int class = 0; class < CLASS_CNT; class ++)
		vec_done(&s.active[class]);
	idmap_done(&s.time_of);
	vec_done(&s.charged);
	if (error < 0) {
		critpath_done(&path);
		return error;
	}
	*ret = path;
	return 0;
}

static int push_part(host_segments *out, struct host_segment seg, int64_t start_ns, int64_t end_ns)
{
	seg.start_ns = start_ns;
	seg.end_ns = end_ns;
	return end_ns > start_ns ? vec_push(out, seg) : 0;
}

/* One waiting stretch of the training thread, with what the autograd thread did meanwhile. */
static int fill_waiting(const struct host_segment *wait, const host_segments *backward,
			size_t *next, host_segments *out)
{
	int64_t now = wait->start_ns;

	while (*next < backward->cnt && backward->data[*next].end_ns <= now)
		(*next)++;
	for (size_t i = *next; i < backward->cnt && now < wait->end_ns; i++) {
		const struct host_segment *b = &backward->data[i];
		int64_t end = MIN(b->end_ns, wait->end_ns);
		const struct host_segment *who = b->class == CLASS_IDLE ? wait : b;
		int error = push_part(out, *who, now, end);

		if (error < 0)
			return error;
		now = MAX(now, end);
	}
	return push_part(out, *wait, now, wait->end_ns);
}

int critpath_stand_in(const host_segments *training, const host_segments *backward,
		      host_segments *out)
{
	size_t next = 0;

	vec_foreach(seg, training) {
		int error = seg->waiting ? fill_waiting(seg, backward, &next, out)
					 : vec_push(out, *seg);

		if (error < 0)
			return error;
	}
	return 0;
}
