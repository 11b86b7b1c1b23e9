/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/flight.h"

#include "read/flight/flight_parts.h"
#include "read/flight/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int flight_add(struct flight_pass *pass, struct event event, int64_t start_ns, int64_t end_ns,
	       const struct link *link)
{
	event.start_ns = start_ns + pass->to_wall_ns;
	event.dur_ns = end_ns - start_ns;
	pass->trace->meta.has_stacks |= event.kind == KIND_PYTHON;
	return build_event(pass->build, event, link);
}

/* --- events of a lane --- */

/* Scopes that torch itself opens: prefixes. */
static bool is_torch_scope(const char *name)
{
	static const char *const prefixes[] = { "Optimizer.", "enumerate(DataLoader)",
						"DistributedDataParallel.",
						"FullyShardedDataParallel.", "FSDP::" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (flight_has_prefix(name, prefixes[i]))
			return true;
	}
	return false;
}

static enum event_kind kind_of(const struct flight_item *item, const char *name)
{
	if (item->kind == FLIGHT_ANNOTATION)
		return KIND_ANNOTATION;
	if (item->kind == FLIGHT_COLLECTIVE && flight_collective(name) != NULL)
		return KIND_ANNOTATION;
	return KIND_OPERATOR;
}

/* Which items add_items() adds: of two with one interval the first added is outside. */
enum item_side { OUTSIDE_FRAMES, INSIDE_FRAMES };

static enum item_side side_of(const struct flight_item *item, const char *name)
{
	return item->kind == FLIGHT_ANNOTATION && !is_torch_scope(name) ? OUTSIDE_FRAMES
									: INSIDE_FRAMES;
}

/* sampled: frames made of samples say what the thread did. */
static int add_items(struct flight_pass *pass, const item_vec *items, uint16_t lane,
		     enum item_side side, bool sampled)
{
	int ret = 0;

	for (size_t i = 0; i < items->cnt && ret == 0; i++) {
		const struct flight_item *item = &items->data[i];
		int64_t start_ns = item->start_ns, end_ns = start_ns + item->dur_ns;
		struct event event = { .lane = lane, .args = item->args };
		const char *name;

		if (flight_is_call(item))
			continue;
		name = pass->log->strings.data[item->what];
		if (side_of(item, name) != side)
			continue;
		event.kind = (uint8_t)kind_of(item, name);
		event.name = flight_intern(pass->trace, name[0] != '\0' ? name : "<unnamed>");
		if (event.name == STRTAB_NONE)
			return -ENOMEM;
		if (sampled && item->kind == FLIGHT_ANNOTATION && is_torch_scope(name))
			start_ns = end_ns;
		ret = flight_add(pass, event, start_ns, end_ns, NULL);
	}
	return ret;
}

/* A call that has not ended: its end and its id. */
struct open_call {
	int64_t end_ns;
	uint32_t id;
};

/*
 * Exact calls, sorted: each is called by the one that encloses it. C functions alone
 * need no order: they do not call each other, and frames of samples enclose them.
 */
static int add_calls(struct flight_pass *pass, const item_vec *items, uint16_t lane, bool exact)
{
	VEC(struct open_call) open = { 0 };
	int ret = 0;

	for (size_t i = 0; i < items->cnt && ret == 0; i++) {
		const struct flight_item *item = &items->data[i];
		struct link link = { pass->next_id, CODE_NONE };
		struct event event = { .lane = lane, .kind = KIND_PYTHON };
		int64_t end_ns = item->start_ns + item->dur_ns;

		if (!flight_is_call(item) || (item->kind == FLIGHT_PYTHON && item->what == 0))
			continue;
		while (open.cnt > 0 && open.data[open.cnt - 1].end_ns <= item->start_ns)
			open.cnt--;
		if (exact && open.cnt > 0)
			link.parent = open.data[open.cnt - 1].id;
		event.name =
			item->kind == FLIGHT_PYTHON
				? pass->names.frames[item->what].text
				: flight_intern(pass->trace, pass->log->strings.data[item->what]);
		ret = event.name == STRTAB_NONE ? -ENOMEM : 0;
		if (ret == 0)
			ret = flight_add(pass, event, item->start_ns, end_ns, &link);
		if (ret == 0 && exact)
			ret = vec_push(&open, (struct open_call){ end_ns, link.id });
		pass->next_id++;
	}
	vec_done(&open);
	return ret;
}

/* --- edges --- */

typedef VEC(struct flight_edge) edge_vec;

static int by_time(const void *a, const void *b)
{
	const struct flight_edge *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int64_t weight_of(const struct flight_pass *pass, const struct flight_item *item)
{
	if (item->kind == FLIGHT_PYTHON)
		return 0;
	if (item->kind != FLIGHT_ANNOTATION)
		return INT64_C(1) << 32;
	return is_torch_scope(pass->log->strings.data[item->what]) ? 0 : -1;
}

/* Lists what begins at or after time_ns, the latest first. */
static int list_begun(edge_vec *open, int64_t time_ns, edge_vec *edges)
{
	int ret = 0;

	while (ret == 0 && open->cnt > 0 && open->data[open->cnt - 1].time_ns >= time_ns)
		ret = vec_push(edges, open->data[--open->cnt]);
	return ret;
}

/*
 * What each edge adds, the latest first. Items come so by their ends and enclose each
 * other, so those that are open are a stack.
 */
static int list_edges(const struct flight_pass *pass, const item_vec *items, edge_vec *edges)
{
	edge_vec open = { 0 };
	int ret = 0;

	for (size_t i = 0; i < items->cnt && ret == 0; i++) {
		const struct flight_item *item = &items->data[i];
		int64_t adds = weight_of(pass, item), end_ns = item->start_ns + item->dur_ns;

		if (adds == 0 || item->dur_ns == 0)
			continue;
		ret = list_begun(&open, end_ns, edges);
		if (ret == 0)
			ret = vec_push(edges, (struct flight_edge){ end_ns, -adds });
		if (ret == 0)
			ret = vec_push(&open, (struct flight_edge){ item->start_ns, adds });
	}
	if (ret == 0)
		ret = list_begun(&open, INT64_MIN, edges);
	vec_done(&open);
	return ret;
}

static void sort_edges(edge_vec *edges)
{
	bool sorted = true;

	for (size_t i = 0, j = edges->cnt; i + 1 < j; i++) {
		struct flight_edge late = edges->data[i];

		edges->data[i] = edges->data[--j];
		edges->data[j] = late;
	}
	for (size_t i = 1; i < edges->cnt && sorted; i++)
		sorted = edges->data[i - 1].time_ns <= edges->data[i].time_ns;
	if (!sorted)
		qsort(edges->data, edges->cnt, sizeof(*edges->data), by_time);
}

/* The sums from each edge on; edges of one moment become one. */
static int find_edges(const struct flight_pass *pass, const item_vec *items, edge_vec *edges)
{
	int64_t weight = 0;
	size_t kept = 0;
	int ret = list_edges(pass, items, edges);

	if (ret < 0)
		return ret;
	sort_edges(edges);
	for (size_t i = 0; i < edges->cnt; i++) {
		weight += edges->data[i].weight;
		if (kept > 0 && edges->data[kept - 1].time_ns == edges->data[i].time_ns)
			kept--;
		edges->data[kept++] = (struct flight_edge){ edges->data[i].time_ns, weight };
	}
	edges->cnt = kept;
	return 0;
}

/* --- threads --- */

struct thread_samples {
	const struct ring_record *data;
	size_t cnt;
};

static int by_tid_and_time(const void *a, const void *b)
{
	const struct ring_record *x = a, *y = b;

	if (flight_sample_tid(x) != flight_sample_tid(y))
		return flight_sample_tid(x) < flight_sample_tid(y) ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

int flight_sort_samples(const struct flightlog *log, record_vec *ret)
{
	vec_foreach(record, &log->samples) {
		if (record->kind == FLIGHT_SAMPLE && flight_sample_tid(record) != 0 &&
		    vec_push(ret, *record) < 0)
			return -ENOMEM;
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_tid_and_time);
	return 0;
}

static size_t first_of(const record_vec *all, uint64_t tid)
{
	size_t low = 0, high = all->cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (flight_sample_tid(&all->data[middle]) >= tid)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct thread_samples samples_of(const record_vec *all, uint32_t tid)
{
	size_t begin = first_of(all, tid), end = first_of(all, (uint64_t)tid + 1);

	return (struct thread_samples){ end > begin ? &all->data[begin] : NULL, end - begin };
}

static int add_lane(struct flight_pass *pass, uint32_t tid, const char *comm)
{
	bool training = tid == pass->log->training_tid;
	struct ident thread = { .num = tid };
	char text[64];
	int lane;

	lane = build_lane(pass->build, (struct ident){ .num = pass->log->pid }, thread,
			  LANE_THREAD);
	if (lane < 0 || (comm[0] == '\0' && !training))
		return lane;
	(void)snprintf(text, sizeof(text), "thread %u (%s)", tid, training ? "training" : comm);
	pass->trace->lanes[lane].name = flight_intern(pass->trace, text);
	return pass->trace->lanes[lane].name != STRTAB_NONE ? lane : -ENOMEM;
}

static int add_leaves(struct flight_pass *pass, uint32_t tid, const leaf_vec *leaves)
{
	int ret = 0;

	for (size_t i = 0; i < leaves->cnt && ret == 0; i++) {
		const struct flight_leaf *leaf = &leaves->data[i];
		struct event event = { .name = leaf->name,
				       .lane = leaf->lane,
				       .kind = KIND_PYTHON };

		/* How the GPU's driver waits says nothing; that it was called says all. */
		if (flight_in_gpu_call(pass, tid, leaf->start_ns, leaf->end_ns))
			continue;
		ret = flight_add(pass, event, leaf->start_ns, leaf->end_ns, &leaf->link);
	}
	return ret;
}

static int add_events(struct flight_pass *pass, struct flight_thread *thread, const item_vec *items,
		      const struct thread_samples *samples)
{
	bool exact = flight_is_exact(items), sampled = !exact && samples->cnt > 0;
	leaf_vec leaves = { 0 };
	int ret = add_items(pass, items, thread->lane, OUTSIDE_FRAMES, sampled);

	if (ret == 0 && sampled)
		ret = flight_stacks(pass, thread, samples->data, samples->cnt, &leaves);
	if (ret == 0)
		ret = add_calls(pass, items, thread->lane, exact);
	if (ret == 0)
		ret = add_items(pass, items, thread->lane, INSIDE_FRAMES, sampled);
	if (ret == 0)
		ret = add_leaves(pass, thread->tid, &leaves);
	vec_done(&leaves);
	return ret;
}

static int add_to_lane(struct flight_pass *pass, struct flight_thread *thread, const char *comm,
		       const item_vec *items, const struct thread_samples *samples)
{
	int lane = add_lane(pass, thread->tid, comm);

	if (lane == -ENOSPC) {
		pass->trace->drops.unsupported_overlap += samples->cnt + items->cnt;
		return 0;
	}
	if (lane < 0)
		return lane;
	thread->lane = (uint16_t)lane;
	return add_events(pass, thread, items, samples);
}

/* records: NULL for a thread without a lane of records. */
static int add_thread(struct flight_pass *pass, uint32_t tid, const struct flightlog_lane *records,
		      const record_vec *all)
{
	struct thread_samples samples = samples_of(all, tid);
	struct flight_thread thread = { .tid = tid };
	item_vec items = { 0 };
	edge_vec edges = { 0 };
	int ret = records != NULL ? flight_items(pass, records, &items) : 0;

	if (ret == 0)
		ret = find_edges(pass, &items, &edges);
	thread.edges = edges.data;
	thread.edge_cnt = edges.cnt;
	if (ret == 0 && samples.cnt + items.cnt > 0)
		ret = add_to_lane(pass, &thread, records != NULL ? records->name : "", &items,
				  &samples);
	vec_done(&items);
	vec_done(&edges);
	return ret;
}

#define PERIOD_NS (100 * NSEC_PER_MSEC) /* when one sample is all there is */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The median distance of the moments in the window at which any thread was sampled. */
static int find_period(struct flight_pass *pass, const record_vec *samples)
{
	_cleanup_free_ int64_t *times = calloc(samples->cnt + 1, sizeof(*times));
	size_t cnt = 0, gaps = 0;

	if (times == NULL)
		return -ENOMEM;
	vec_foreach(sample, samples) {
		if (sample->time_ns >= pass->start_ns && sample->time_ns <= pass->end_ns)
			times[cnt++] = sample->time_ns;
	}
	qsort(times, cnt, sizeof(*times), by_value);
	for (size_t i = 1; i < cnt; i++) {
		if (times[i] > times[i - 1])
			times[gaps++] = times[i] - times[i - 1];
	}
	qsort(times, gaps, sizeof(*times), by_value);
	pass->period_ns = gaps > 0 ? times[gaps / 2] : PERIOD_NS;
	return 0;
}

static bool has_lane(const struct flightlog *log, uint32_t tid)
{
	vec_foreach(lane, &log->lanes) {
		if (lane->tid == tid)
			return true;
	}
	return false;
}

static int add_threads(struct flight_pass *pass)
{
	const struct flightlog *log = pass->log;
	record_vec all = { 0 };
	uint32_t last = 0;
	int ret = flight_sort_samples(log, &all);

	if (ret == 0)
		ret = find_period(pass, &all);
	for (size_t i = 0; i < log->lanes.cnt && ret == 0; i++) {
		if (log->lanes.data[i].tid != 0)
			ret = add_thread(pass, log->lanes.data[i].tid, &log->lanes.data[i], &all);
	}
	for (size_t i = 0; i < all.cnt && ret == 0; i++) {
		uint32_t tid = flight_sample_tid(&all.data[i]);

		if (tid == last)
			continue;
		last = tid;
		if (!has_lane(log, tid))
			ret = add_thread(pass, tid, NULL, &all);
	}
	vec_done(&all);
	return ret;
}

/* --- the whole --- */

static int by_record_time(const void *a, const void *b)
{
	const struct ring_record *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int sort_marks(struct flight_pass *pass)
{
	const record_vec *marks = &pass->log->marks;

	if (marks->cnt == 0)
		return 0;
	if (vec_reserve(&pass->marks, marks->cnt) < 0)
		return -ENOMEM;
	memcpy(pass->marks.data, marks->data, marks->cnt * sizeof(*marks->data));
	pass->marks.cnt = marks->cnt;
	qsort(pass->marks.data, marks->cnt, sizeof(*marks->data), by_record_time);
	return 0;
}

static int set_meta(const struct flightlog *log, struct trace *trace)
{
	trace->meta.rank = log->rank >= 0 ? log->rank : RANK_UNKNOWN;
	trace->meta.world_size = log->world_size > 0 ? log->world_size : -1;
	trace->meta.source = strdup("agent");
	if (log->host[0] != '\0')
		trace->meta.host = strdup(log->host);
	return trace->meta.source == NULL || (log->host[0] != '\0' && trace->meta.host == NULL)
		       ? -ENOMEM
		       : 0;
}

static uint64_t grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* What was lost since the first look at the recorder. */
static void set_drops(const struct flightlog *log, struct trace *trace)
{
	const struct flightlog_drops *a = &log->before, *b = &log->drops;

	trace->drops.flight_lost = grown(a->overrun, b->overrun) + grown(a->torn, b->torn) +
				   grown(a->limit, b->limit) + grown(a->gpu, b->gpu);
	trace->drops.bad_event += grown(a->gpu_untimed, b->gpu_untimed);
	trace->drops.flight_invalid = grown(a->invalid, b->invalid);
	trace->drops.unsupported_overlap += grown(a->calls, b->calls);
	trace->drops.flight_late = grown(a->late, b->late);
	trace->drops.flight_unreadable = grown(a->unreadable, b->unreadable);
	trace->drops.flight_tables = grown(a->frames, b->frames) + grown(a->nodes, b->nodes);
	trace->drops.flight_names = grown(a->strings, b->strings);
	trace->drops.flight_lanes = grown(a->lanes, b->lanes);
	trace->drops.flight_nested = grown(a->nested, b->nested);
	trace->drops.flight_threads = grown(a->threads, b->threads);
}

static int make_trace(struct flight_pass *pass)
{
	int ret = set_meta(pass->log, pass->trace);

	set_drops(pass->log, pass->trace);
	if (ret == 0)
		ret = flight_names_init(&pass->names, pass->log, &pass->trace->strings);
	if (ret == 0)
		ret = sort_marks(pass);
	if (ret == 0)
		ret = flight_gpu_calls(pass);
	if (ret == 0)
		ret = add_threads(pass);
	if (ret == 0)
		ret = flight_gpu(pass);
	if (ret == 0)
		ret = flight_nccl(pass);
	if (ret == 0)
		ret = build_finish(pass->build, 0);
	flight_names_done(&pass->names);
	vec_done(&pass->marks);
	vec_done(&pass->gpu_calls);
	free(take_ptr(pass->args_of_code));
	return ret;
}

int flight_trace(const struct flightlog *log, int64_t start_ns, int64_t end_ns, struct trace *ret,
		 struct err *err)
{
	struct trace trace;
	struct build build;
	struct flight_pass pass = {
		.log = log,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.to_wall_ns = log->wall_ns - log->mono_ns,
		.build = &build,
		.trace = &trace,
	};
	int error;

	if (start_ns < 0 || end_ns > FLIGHT_TIME_MAX_NS || end_ns <= start_ns)
		return err_set(err, EINVAL, "flight log: expected a window, found %lld to %lld ns",
			       (long long)start_ns, (long long)end_ns);
	error = trace_init(&trace);
	build_init(&build, &trace);
	if (error == 0)
		error = make_trace(&pass);
	build_done(&build);
	if (error < 0) {
		trace_done(&trace);
		return err_set(err, -error, "flight log: %s", strerror(-error));
	}
	*ret = trace;
	return 0;
}
