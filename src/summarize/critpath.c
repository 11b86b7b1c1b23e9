/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/critpath.h"

#include <errno.h>
#include <string.h>

/* The executions in progress, per class, longest running first. */
typedef VEC(uint32_t) active_list;

struct sweep {
	struct crit_exec *execs;
	active_list active[CLASS_CNT];
	uint8_t top_class;   /* the highest class with executions in progress; CLASS_IDLE: none */
	int64_t next_end_ns; /* the earliest end among them; INT64_MAX: none */
	struct crit_sink sink;
	struct crit_segment open; /* the last stretch, not yet emitted: the next may extend it */
	struct critpath *out;	  /* NULL: times are not computed */
	struct nodemap time_of;	  /* index in out->times */
	size_t host_time;	  /* index in out->times of the current host stretch */
	VEC(uint64_t) charged;	  /* by index in out->times: the stretch that charged it last */
	uint64_t stretch;
};

void critpath_done(struct critpath *path)
{
	vec_done(&path->times);
}

static __attribute__((noinline)) struct crit_time *add_time(struct sweep *s, uint32_t node,
							    uint8_t class)
{
	uint32_t idx = (uint32_t)s->out->times.cnt;

	if (vec_push(&s->out->times, (struct crit_time){ .node = node, .class = class }) < 0 ||
	    vec_push(&s->charged, 0) < 0 || nodemap_set(&s->time_of, node, class, idx) < 0)
		return NULL;
	return &s->out->times.data[idx];
}

static inline struct crit_time *time_of(struct sweep *s, uint32_t node, uint8_t class)
{
	uint32_t idx = nodemap_get(&s->time_of, node, class);

	return idx != NODEMAP_NONE ? &s->out->times.data[idx] : add_time(s, node, class);
}

static int give_segment(struct sweep *s)
{
	if (s->sink.path == NULL || s->open.end_ns == s->open.start_ns)
		return 0;
	return s->sink.path(s->sink.to, &s->open);
}

static __attribute__((noinline)) int begin_segment(struct sweep *s, struct crit_segment next)
{
	int error = give_segment(s);

	s->open = next;
	return error;
}

static inline int add_segment(struct sweep *s, int64_t start_ns, int64_t end_ns, uint32_t node,
			      uint8_t class)
{
	struct crit_segment *open = &s->open;

	if (s->out != NULL)
		s->out->class_ns[class] += end_ns - start_ns;
	if (open->node == node && open->class == class && open->end_ns == start_ns) {
		open->end_ns = end_ns;
		return 0;
	}
	return begin_segment(s, (struct crit_segment){ start_ns, end_ns, node, class });
}

/* A function with several executions at once is charged once per stretch. */
static bool charge_first(struct sweep *s, const struct crit_time *t)
{
	uint64_t *charged = &s->charged.data[t - s->out->times.data];

	if (*charged == s->stretch)
		return false;
	*charged = s->stretch;
	return true;
}

/* Divides a stretch of this length among the executions of one class. */
static __attribute__((noinline)) int charge_execs(struct sweep *s, const active_list *list,
						  uint8_t class, int64_t length)
{
	int64_t left = length, each = length / (int64_t)list->cnt;

	s->stretch++;
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
	return 0;
}

/* The same for a single execution, the common case. */
static inline int charge_exec(struct sweep *s, struct crit_exec *exec, uint8_t class,
			      int64_t length)
{
	struct crit_time *t = time_of(s, exec->node, class);

	if (t == NULL)
		return -ENOMEM;
	exec->critical_ns += length;
	t->share_ns += length;
	t->critical_ns += length;
	return 0;
}

static void charge_host(struct sweep *s, int64_t length)
{
	struct crit_time *t = &s->out->times.data[s->host_time];

	t->share_ns += length;
	t->critical_ns += length;
}

static int charge(struct sweep *s, const struct host_segment *host, int64_t start_ns,
		  int64_t end_ns)
{
	int64_t length = end_ns - start_ns;
	int error = 0;

	if (length <= 0)
		return 0;
	if (s->top_class > CLASS_IDLE && s->top_class >= host->class) {
		const active_list *list = &s->active[s->top_class];
		struct crit_exec *first = &s->execs[list->data[0]];

		if (s->out != NULL)
			error = list->cnt == 1 ? charge_exec(s, first, s->top_class, length)
					       : charge_execs(s, list, s->top_class, length);
		return error < 0 ? error
				 : add_segment(s, start_ns, end_ns, first->node, s->top_class);
	}
	if (s->out != NULL)
		charge_host(s, length);
	return add_segment(s, start_ns, end_ns, host->node, host->class);
}

static void active_remove_ended(struct sweep *s, int64_t now_ns)
{
	if (s->next_end_ns > now_ns)
		return;
	s->top_class = CLASS_IDLE;
	s->next_end_ns = INT64_MAX;
	for (int class = 0; class < CLASS_CNT; class ++) {
		active_list *list = &s->active[class];
		size_t kept = 0;

		for (size_t i = 0; i < list->cnt; i++) {
			if (s->execs[list->data[i]].end_ns <= now_ns)
				continue;
			s->next_end_ns = MIN(s->next_end_ns, s->execs[list->data[i]].end_ns);
			list->data[kept++] = list->data[i];
		}
		list->cnt = kept;
		s->top_class = kept > 0 ? (uint8_t) class : s->top_class;
	}
}

static int active_add(struct sweep *s, uint32_t idx)
{
	const struct crit_exec *e = &s->execs[idx];

	if (vec_push(&s->active[e->class], idx) < 0)
		return -ENOMEM;
	s->next_end_ns = MIN(s->next_end_ns, e->end_ns);
	s->top_class = MAX(s->top_class, e->class);
	return 0;
}

/* Charges thread_ns and caches the entry of the host stretch: there are two stretches per event. */
static int begin_host(struct sweep *s, const struct host_segment *host)
{
	struct crit_time *t = s->out != NULL ? time_of(s, host->node, host->class) : NULL;

	if (s->out == NULL)
		return 0;
	if (t == NULL)
		return -ENOMEM;
	t->thread_ns += host->end_ns - host->start_ns;
	s->host_time = (size_t)(t - s->out->times.data);
	return 0;
}

static int sweep_segment(struct sweep *s, size_t exec_cnt, const struct host_segment *host,
			 size_t *next_exec)
{
	int64_t now = host->start_ns;

	if (begin_host(s, host) < 0)
		return -ENOMEM;
	while (now < host->end_ns) {
		int64_t until = host->end_ns;
		int error;

		active_remove_ended(s, now);
		while (*next_exec < exec_cnt && s->execs[*next_exec].start_ns <= now) {
			if (s->execs[*next_exec].end_ns > now &&
			    active_add(s, (uint32_t)*next_exec) < 0)
				return -ENOMEM;
			(*next_exec)++;
		}
		until = MIN(until, s->next_end_ns);
		if (*next_exec < exec_cnt)
			until = MIN(until, s->execs[*next_exec].start_ns);
		error = charge(s, host, now, until);
		if (error < 0)
			return error;
		now = until;
	}
	return 0;
}

static int sweep_all(struct sweep *s, size_t exec_cnt, struct host_source host)
{
	struct host_segment seg;
	size_t next_exec = 0;
	int found, error = 0;

	while (error == 0 && (found = host.next(host.from, &seg)) != 0) {
		if (found < 0)
			return found;
		error = sweep_segment(s, exec_cnt, &seg, &next_exec);
		if (error == 0 && s->sink.host != NULL)
			error = s->sink.host(s->sink.to, &seg);
	}
	return error == 0 ? give_segment(s) : error;
}

int critpath_find(struct crit_exec *execs, size_t exec_cnt, struct host_source host,
		  struct crit_sink sink, struct critpath *ret)
{
	struct critpath path = { 0 };
	struct sweep s = { .execs = execs,
			   .next_end_ns = INT64_MAX,
			   .sink = sink,
			   .out = ret != NULL ? &path : NULL };
	int error;

	error = sweep_all(&s, exec_cnt, host);
	for (int class = 0; class < CLASS_CNT; class ++)
		vec_done(&s.active[class]);
	nodemap_done(&s.time_of);
	vec_done(&s.charged);
	if (error < 0)
		critpath_done(&path);
	else if (ret != NULL)
		*ret = path;
	return error;
}

/*
 * Moves to the autograd thread's first stretch that ends after now_ns. Returns 1, 0 when there is
 * none, -errno.
 */
static int find_backward(struct stand_in *s, int64_t now_ns)
{
	while (!s->have_next || s->next.end_ns <= now_ns) {
		int ret = s->backward.next(s->backward.from, &s->next);

		if (ret <= 0) {
			s->have_next = false;
			return ret;
		}
		s->have_next = true;
	}
	return 1;
}

/* The next part of a waiting stretch, replaced by the autograd thread's stretch at that time. */
static int fill_waiting(struct stand_in *s, struct host_segment *ret)
{
	struct host_segment *wait = &s->wait;
	int found = find_backward(s, wait->start_ns);

	if (found < 0)
		return found;
	*ret = found == 0 || s->next.class == CLASS_IDLE ? *wait : s->next;
	ret->start_ns = wait->start_ns;
	ret->end_ns = found == 0 ? wait->end_ns : MIN(s->next.end_ns, wait->end_ns);
	wait->start_ns = ret->end_ns;
	s->have_wait = wait->start_ns < wait->end_ns;
	return 1;
}

static int stand_in_next(void *from, struct host_segment *ret)
{
	struct stand_in *s = from;
	int found;

	if (s->have_wait)
		return fill_waiting(s, ret);
	found = s->training.next(s->training.from, ret);
	if (found <= 0 || !ret->waiting)
		return found;
	s->wait = *ret;
	return fill_waiting(s, ret);
}

struct host_source stand_in_source(struct stand_in *stand_in)
{
	return (struct host_source){ stand_in_next, stand_in };
}
