/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/stalls/stalls.h"

#include "base/stats.h"
#include "model/thresholds.h"
#include "model/usage/gpucall.h"
#include "summarize/namefacts.h"
#include "summarize/stalls/holder.h"
#include "summarize/usage/gaps.h"

#include <errno.h>
#include <string.h>

#define OCTAVES 32 /* of lengths in ns: the last one is 2 s and more */
#define NAMES_KEPT 16
#define KIND_GAP KIND_CNT /* between executions */
#define EACH 0.1	  /* quantile of the iterations: what they all have */

/* Executions of one function, by the octave of their length. */
struct lengths {
	uint32_t cnt[OCTAVES];
};

/* A long execution. */
struct stall {
	int64_t start_ns, length_ns;
	int64_t critical_ns; /* of it, on the critical path */
	uint32_t node, iteration;
	uint8_t class, kind;
	bool is; /* else it is usual for its function */
};

struct stall_look {
	struct pass *p;
	struct fingerprint *fp;
	gap_list gaps;		 /* times without device work and without collectives */
	struct lengths *lengths; /* by node */
	uint32_t *executions;	 /* by iteration */
	size_t iteration;	 /* of the last stretch */
	double *values;		 /* by iteration, scratch */
	VEC(struct stall) found;
};

/* --- the walk over the threads --- */

static int find_gaps(struct stall_look *look)
{
	int64_t until_ns = look->p->window.start_ns;
	int error = 0;

	vec_foreach(exec, &look->p->execs) {
		if (exec->start_ns > until_ns && error == 0)
			error = gaps_add(&look->gaps, until_ns, exec->start_ns);
		until_ns = MAX(until_ns, exec->end_ns);
	}
	if (error == 0 && until_ns < look->p->window.end_ns)
		error = gaps_add(&look->gaps, until_ns, look->p->window.end_ns);
	return error;
}

/* Waits for something else than a CPU; a collection has a cause of its own. */
static bool is_wait(const struct pass *p, const struct host_segment *seg)
{
	const struct event *e = seg->event != EVENT_NONE ? &p->trace->events[seg->event] : NULL;
	enum gpucall call;

	if (seg->class == CLASS_COMM)
		return true;
	if (e == NULL)
		return false;
	if (e->kind == KIND_GC || p->facts[e->name] & NAME_LOADER)
		return true;
	if (e->kind != KIND_RUNTIME)
		return false;
	call = gpucall_of(event_name(p->trace, e));
	return call == GPUCALL_WAIT || call == GPUCALL_ALLOCATE || call == GPUCALL_PIN;
}

/* Without a device, computing operators are on the path themselves. */
static int64_t critical_ns(const struct stall_look *look, const struct host_segment *seg)
{
	if (look->p->mode == CLASSIFY_CPU_ONLY && seg->class >= CLASS_COMM)
		return seg->end_ns - seg->start_ns;
	return gaps_within(&look->gaps, seg->start_ns, seg->end_ns);
}

static int add_long(struct stall_look *look, const struct host_segment *seg)
{
	const struct pass *p = look->p;
	struct stall new = {
		.start_ns = seg->start_ns,
		.length_ns = seg->end_ns - seg->start_ns,
		.critical_ns = critical_ns(look, seg),
		.node = seg->node,
		.iteration = (uint32_t)look->iteration,
		.class = seg->class,
		.kind = seg->event != EVENT_NONE ? p->trace->events[seg->event].kind : KIND_GAP,
	};

	return is_wait(p, seg) ? 0 : vec_push(&look->found, new);
}

/* Moves to the iteration in which time_ns lies. Returns whether there is one. */
static bool find_iteration(struct stall_look *look, int64_t time_ns)
{
	const struct fingerprint *fp = look->fp;
	int64_t at_ns = time_ns - look->p->window.start_ns;

	while (look->iteration < fp->iteration_cnt &&
	       fp->iterations[look->iteration].start_ns + fp->iterations[look->iteration].dur_ns <=
		       at_ns)
		look->iteration++;
	return look->iteration < fp->iteration_cnt &&
	       fp->iterations[look->iteration].start_ns <= at_ns;
}

static int octave_of(int64_t length_ns)
{
	return length_ns <= 1 ? 0 : MIN(63 - __builtin_clzll((uint64_t)length_ns), OCTAVES - 1);
}

static int add_segment(struct stall_look *look, const struct host_segment *seg)
{
	int64_t length_ns = seg->end_ns - seg->start_ns;

	if (seg->node >= look->p->cct.nodes.cnt || !find_iteration(look, seg->start_ns))
		return 0;
	look->lengths[seg->node].cnt[octave_of(length_ns)]++;
	look->executions[look->iteration]++;
	return length_ns < STALL_MIN_NS ? 0 : add_long(look, seg);
}

static int walk(struct stall_look *look)
{
	struct host_segment seg;
	struct host_line line;
	int error = host_line_init(look->p, &line), found;

	while (error == 0 && (found = line.source.next(line.source.from, &seg)) != 0)
		error = found > 0 ? add_segment(look, &seg) : found;
	host_line_done(&line);
	return error;
}

/* --- which long executions are stalls --- */

/* Longest execution of the octave that has the function's median; 0: it runs in few iterations. */
static int64_t usual_ns(const struct stall_look *look, uint32_t node)
{
	const struct lengths *of = &look->lengths[node];
	uint64_t all = 0, seen = 0;

	for (int i = 0; i < OCTAVES; i++)
		all += of->cnt[i];
	if (2 * all < look->fp->iteration_cnt)
		return 0;
	for (int i = 0; i < OCTAVES; i++) {
		seen += of->cnt[i];
		if (2 * seen >= all)
			return INT64_C(2) << i;
	}
	return 0;
}

/* By function and iteration, the longest first. */
static int stall_cmp(const void *a, const void *b)
{
	const struct stall *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->iteration != y->iteration)
		return x->iteration < y->iteration ? -1 : 1;
	if (x->length_ns != y->length_ns)
		return x->length_ns > y->length_ns ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

/* Of the long executions of one function in one iteration, what other iterations have is usual. */
static void judge_iteration(struct stall *found, size_t cnt, double each_ns)
{
	double excess_ns = -each_ns, taken_ns = 0;

	for (size_t i = 0; i < cnt; i++)
		excess_ns += found[i].is ? (double)found[i].length_ns : 0;
	for (size_t i = 0; i < cnt; i++) {
		if (!found[i].is)
			continue;
		found[i].is = taken_ns + (double)found[i].length_ns / 2 <= excess_ns;
		taken_ns += found[i].is ? (double)found[i].length_ns : 0;
	}
}

/* The same for all its iterations. */
static void judge_node(struct stall_look *look, struct stall *found, size_t cnt)
{
	size_t iteration_cnt = look->fp->iteration_cnt;
	int64_t usual = usual_ns(look, found[0].node);
	double each_ns;

	memset(look->values, 0, iteration_cnt * sizeof(*look->values));
	for (size_t i = 0; i < cnt; i++) {
		found[i].is = usual > 0 && usual <= STALL_USUAL_NS &&
			      found[i].length_ns >= STALL_FACTOR * usual;
		if (found[i].is)
			look->values[found[i].iteration] += (double)found[i].length_ns;
	}
	each_ns = stats_quantile(look->values, iteration_cnt, EACH);
	for (size_t i = 0, end; i < cnt; i = end) {
		for (end = i; end < cnt && found[end].iteration == found[i].iteration;)
			end++;
		judge_iteration(&found[i], end - i, each_ns);
	}
}

static void judge_all(struct stall_look *look)
{
	struct stall *found = look->found.data;

	for (size_t i = 0, end; i < look->found.cnt; i = end) {
		for (end = i; end < look->found.cnt && found[end].node == found[i].node;)
			end++;
		judge_node(look, &found[i], end - i);
	}
}

/*
 * A thread that waits for the interpreter's lock asks for it once per switch interval, and may ask in
 * vain. Returns how many intervals it waited; 0: it waited for something else.
 */
static int64_t switches_of(int64_t ns)
{
	int64_t intervals = ns / STALL_SWITCH_NS, over_ns = ns % STALL_SWITCH_NS;

	return over_ns <= STALL_SWITCH_NS / 16 + intervals * STALL_SWITCH_NS / 50 ? intervals : 0;
}

/*
 * An iteration in which much is long has more to do: its inputs are larger, or it warms up. But waits
 * for the lock are frequent.
 */
static void drop_long_iterations(struct stall_look *look)
{
	memset(look->values, 0, look->fp->iteration_cnt * sizeof(*look->values));
	vec_foreach(s, &look->found)
		look->values[s->iteration] += s->is && switches_of(s->length_ns) == 0;
	vec_foreach(s, &look->found)
		s->is &= look->values[s->iteration] <=
			 STALL_RARE_FRAC * look->executions[s->iteration];
}

/* --- results --- */

/* A stall in an operator is no wait for the interpreter's lock, and no collection. */
static bool is_inside(const struct stall *s)
{
	return s->kind == KIND_OPERATOR || s->kind == KIND_RUNTIME;
}

struct name_count {
	uint32_t name; /* string id in the tree's names */
	uint64_t cnt;
	int64_t ns;
};

typedef VEC(struct name_count) name_counts;

static int count_name(name_counts *names, uint32_t name, int64_t ns)
{
	vec_foreach(n, names) {
		if (n->name == name) {
			n->cnt++;
			n->ns += ns;
			return 0;
		}
	}
	return vec_push(names, (struct name_count){ name, 1, ns });
}

static int name_cmp(const void *a, const void *b)
{
	const struct name_count *x = a, *y = b;

	if (x->cnt != y->cnt)
		return x->cnt > y->cnt ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static int keep_names(struct stall_look *look, name_counts *names)
{
	struct fp_stalls *stalls = &look->fp->stalls;
	struct arena *arena = &look->fp->arena;
	size_t cnt = MIN(names->cnt, (size_t)NAMES_KEPT);

	if (names->cnt > 0)
		qsort(names->data, names->cnt, sizeof(*names->data), name_cmp);
	stalls->names = arena_calloc(arena, cnt + 1, sizeof(*stalls->names));
	if (stalls->names == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct name_count *n = &names->data[i];
		const char *text = arena_strdup(arena, strtab_text(&look->p->cct.names, n->name));

		if (text == NULL)
			return -ENOMEM;
		stalls->names[i] = (struct fp_stall_name){ text, n->cnt, n->ns };
		stalls->name_cnt++;
	}
	return 0;
}

/* Names of operators: the runtime has one lock, which another thread may hold for long. */
static int add_names(struct stall_look *look)
{
	name_counts names = { 0 };
	int error = 0;

	vec_foreach(s, &look->found) {
		if (s->is && s->kind == KIND_OPERATOR && error == 0)
			error = count_name(&names, look->p->cct.nodes.data[s->node].name,
					   s->critical_ns);
	}
	if (error == 0)
		error = keep_names(look, &names);
	vec_done(&names);
	return error;
}

static void add_stall(struct stall_look *look, const struct stall *s)
{
	struct fp_stalls *stalls = &look->fp->stalls;

	stalls->cnt++;
	stalls->inside_cnt += is_inside(s);
	/* Odd numbers: ticks of a scheduler are 1, 4 or 10 ms, and few of them meet at one. */
	stalls->switch_cnt += switches_of(s->length_ns) % 2 == 1;
	stalls->longest_ns = MAX(stalls->longest_ns, s->length_ns);
	stalls->iteration_ns[s->iteration] += s->critical_ns;
}

/* What the device hides costs nothing now, but the thread may be late for it. */
static void add_to_function(struct stall_look *look, const struct stall *s)
{
	uint32_t f = function_index_get(&look->p->index, s->node, s->class);

	if (f < look->fp->function_cnt)
		look->fp->functions[f].stall_ns += s->length_ns;
}

static int add_all(struct stall_look *look)
{
	struct fp_stalls *stalls = &look->fp->stalls;
	_cleanup_free_ double *lengths = calloc(look->found.cnt + 1, sizeof(*lengths));

	stalls->iteration_ns = arena_calloc(&look->fp->arena, look->fp->iteration_cnt + 1,
					    sizeof(*stalls->iteration_ns));
	if (lengths == NULL || stalls->iteration_ns == NULL)
		return -ENOMEM;
	stalls->iteration_cnt = look->fp->iteration_cnt;
	vec_foreach(s, &look->found) {
		if (s->is)
			add_to_function(look, s);
		s->is &= s->critical_ns >= STALL_MIN_NS;
		if (!s->is)
			continue;
		lengths[stalls->cnt] = (double)s->length_ns;
		add_stall(look, s);
	}
	stalls->median_ns = (int64_t)stats_median(lengths, stalls->cnt);
	stalls->known = true;
	return add_names(look);
}

static int start_cmp(const void *a, const void *b)
{
	const struct stall *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Who held the lock meanwhile, if it was one. */
static int find_holder(struct stall_look *look)
{
	gap_list times = { 0 };
	int64_t until_ns = INT64_MIN;
	int error = 0;

	if (look->found.cnt > 0)
		qsort(look->found.data, look->found.cnt, sizeof(*look->found.data), start_cmp);
	for (size_t i = 0; i < look->found.cnt && error == 0; i++) {
		const struct stall *s = &look->found.data[i];
		int64_t end_ns = s->start_ns + s->length_ns;

		if (!s->is || end_ns <= until_ns)
			continue;
		if (times.cnt > 0 && s->start_ns <= until_ns)
			times.data[times.cnt - 1].end_ns = end_ns;
		else
			error = gaps_add(&times, s->start_ns, end_ns);
		until_ns = end_ns;
	}
	if (error == 0)
		error = holder_find(look->p, &times, look->fp);
	vec_done(&times);
	return error;
}

static int look_at_host(struct stall_look *look)
{
	int error = find_gaps(look);

	if (error == 0)
		error = walk(look);
	if (error < 0)
		return error;
	if (look->found.cnt > 0)
		qsort(look->found.data, look->found.cnt, sizeof(*look->found.data), stall_cmp);
	judge_all(look);
	drop_long_iterations(look);
	error = add_all(look);
	return error == 0 ? find_holder(look) : error;
}

int stalls_add(struct pass *p, struct fingerprint *fp)
{
	_cleanup_free_ struct lengths *lengths = NULL;
	_cleanup_free_ uint32_t *executions = NULL;
	_cleanup_free_ double *values = NULL;
	struct stall_look look = { .p = p, .fp = fp };
	int error = -ENOMEM;

	if (!fp->iterations_known || fp->iteration_cnt < STALL_ITERATIONS || p->trace->meta.sampled)
		return 0;
	lengths = calloc(p->cct.nodes.cnt + 1, sizeof(*lengths));
	executions = calloc(fp->iteration_cnt, sizeof(*executions));
	values = calloc(fp->iteration_cnt, sizeof(*values));
	look.lengths = lengths;
	look.executions = executions;
	look.values = values;
	if (lengths != NULL && executions != NULL && values != NULL)
		error = look_at_host(&look);
	vec_done(&look.gaps);
	vec_done(&look.found);
	return error;
}
