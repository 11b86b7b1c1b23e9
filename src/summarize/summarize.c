/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/summarize.h"

#include "summarize/collectives.h"
#include "summarize/critpath.h"
#include "summarize/utilise.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define KEEP_FRAC 0.001
#define HIDDEN_FRAC 0.01

/* What is gathered about one (node, class) before it becomes a function. */
struct tally {
	uint32_t node;
	uint8_t class, resource;
	int64_t critical_ns, share_ns, total_ns, thread_ns;
	uint64_t executions;
	double elements, bytes; /* sums */
	uint64_t elements_cnt, bytes_cnt;
	struct utilise_sum sum;
};

/* State of one pass; everything in it is freed at its end. */
struct pass {
	const struct trace *trace;
	const struct summarize_options *options;
	struct window window;
	struct cct cct;
	enum classify_mode mode;
	uint32_t *node_of; /* by event */
	host_segments host;
	crit_execs execs;
	struct critpath path;
	VEC(struct tally) tallies;
	struct idmap tally_of;	   /* (node, class) -> index in tallies */
	struct idmap exec_classes; /* (kind, name) -> class of device work, CLASS_IDLE: none */
	struct utilise_scratch scratch;
	struct function_index index;
	struct collectives collectives;
	int64_t rest_ns;
};

static void pass_done(struct pass *p)
{
	window_done(&p->window);
	cct_done(&p->cct);
	free(p->node_of);
	vec_done(&p->host);
	vec_done(&p->execs);
	critpath_done(&p->path);
	vec_done(&p->tallies);
	idmap_done(&p->tally_of);
	idmap_done(&p->exec_classes);
	vec_done(&p->scratch.values);
	idmap_done(&p->index.map);
	collectives_done(&p->collectives);
}

/* --- who did what, when --- */

static int walk_threads(struct pass *p)
{
	struct hostpath path = { .trace = p->trace,
				 .window = &p->window,
				 .cct = &p->cct,
				 .mode = p->mode,
				 .node_of = p->node_of };
	host_segments training = { 0 }, backward = { 0 };
	int error = hostpath_walk(&path, p->window.training_lane, &training);

	/* LANE_NONE matches no event: the walk then gives one idle stretch. */
	if (error == 0)
		error = hostpath_walk(&path, p->window.backward_lane, &backward);
	if (error == 0)
		error = critpath_stand_in(&training, &backward, &p->host);
	vec_done(&training);
	vec_done(&backward);
	return error;
}

static bool is_device_exec(const struct event *e)
{
	return e->kind == KIND_KERNEL || e->kind == KIND_GPU_MEMOP;
}

static int exec_cmp(const void *a, const void *b)
{
	const struct crit_exec *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

/*
 * Class of device work and collectives in ret, CLASS_IDLE for everything else.
 * Kernel names are long and few: each is looked at once.
 */
static int exec_class(struct pass *p, const struct event *e, uint8_t *ret)
{
	enum event_kind kind = (enum event_kind)e->kind;
	uint64_t key = (uint64_t)kind << 32 | e->name;
	uint32_t known;
	const char *name;

	*ret = CLASS_IDLE;
	if (!is_device_exec(e) && kind != KIND_ANNOTATION)
		return 0;
	known = idmap_get(&p->exec_classes, key);
	if (known != IDMAP_NONE) {
		*ret = (uint8_t)known;
		return 0;
	}
	name = event_name(p->trace, e);
	if (classify_is_collective(kind, name))
		*ret = CLASS_COMM;
	else if (is_device_exec(e))
		*ret = (uint8_t)classify_event(kind, name, true, p->mode);
	return idmap_set(&p->exec_classes, key, *ret);
}

/* Device work and collectives: they run whatever the threads do. */
static int add_execs(struct pass *p)
{
	for (uint32_t i = 0; i < p->trace->event_cnt; i++) {
		const struct event *e = &p->trace->events[i];
		struct crit_exec exec = {
			.start_ns = MAX(e->start_ns, p->window.start_ns),
			.end_ns = MIN(event_end_ns(e), p->window.end_ns),
			.event = i,
		};

		if (exec_class(p, e, &exec.class) < 0)
			return -ENOMEM;
		if (exec.class == CLASS_IDLE || e->start_ns >= p->window.end_ns ||
		    event_end_ns(e) <= p->window.start_ns)
			continue;
		exec.node = cct_child(&p->cct, CCT_ROOT, (enum event_kind)e->kind, e->name,
				      event_name(p->trace, e));
		if (exec.node == FRAME_NONE || vec_push(&p->execs, exec) < 0)
			return -ENOMEM;
		p->node_of[i] = exec.node;
	}
	if (p->execs.cnt > 0)
		qsort(p->execs.data, p->execs.cnt, sizeof(*p->execs.data), exec_cmp);
	return 0;
}

/* --- tallies --- */

static uint64_t tally_key(uint32_t node, uint8_t class)
{
	return (uint64_t)node << 8 | class;
}

static struct tally *tally_get(struct pass *p, uint32_t node, uint8_t class)
{
	uint32_t idx = idmap_get(&p->tally_of, tally_key(node, class));

	if (idx != IDMAP_NONE)
		return &p->tallies.data[idx];
	idx = (uint32_t)p->tallies.cnt;
	if (vec_push(&p->tallies,
		     (struct tally){ .node = node, .class = class, .resource = RESOURCE_CNT }) <
		    0 ||
	    idmap_set(&p->tally_of, tally_key(node, class), idx) < 0)
		return NULL;
	return &p->tallies.data[idx];
}

static int tally_path(struct pass *p)
{
	vec_foreach(t, &p->path.times) {
		struct tally *tally = tally_get(p, t->node, t->class);

		if (tally == NULL)
			return -ENOMEM;
		tally->critical_ns = t->critical_ns;
		tally->share_ns = t->share_ns;
	}
	return 0;
}

/*
 * Time on the training thread. Host functions that the device's work hides are
 * not on the critical path, but one of them can make a collective late: long ones
 * are listed with a critical time of 0.
 */
static int tally_threads(struct pass *p)
{
	vec_foreach(seg, &p->host) {
		struct tally *tally = tally_get(p, seg->node, seg->class);

		if (tally == NULL)
			return -ENOMEM;
		tally->thread_ns += seg->end_ns - seg->start_ns;
	}
	return 0;
}

/* Durations outside the window can be anything. */
static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void tally_args(struct tally *tally, const struct event_args *args)
{
	if (args == NULL)
		return;
	if (args->elements >= 0) {
		tally->elements += (double)args->elements;
		tally->elements_cnt++;
	}
	if (args->bytes >= 0) {
		tally->bytes += (double)args->bytes;
		tally->bytes_cnt++;
	}
}

/* Counts executions of the functions that hold the path; the others do not matter. */
static void tally_executions(struct pass *p)
{
	for (uint32_t i = 0; i < p->trace->event_cnt; i++) {
		const struct event *e = &p->trace->events[i];

		if (p->node_of[i] == FRAME_NONE || e->start_ns < p->window.start_ns ||
		    e->start_ns >= p->window.end_ns)
			continue;
		for (uint8_t class = CLASS_HOST; class < CLASS_CNT; class ++) {
			uint32_t idx = idmap_get(&p->tally_of, tally_key(p->node_of[i], class));
			struct tally *tally = idx != IDMAP_NONE ? &p->tallies.data[idx] : NULL;

			if (tally == NULL)
				continue;
			tally->executions++;
			tally->total_ns = add_saturated(tally->total_ns, e->dur_ns);
			tally_args(tally, event_args_borrow(p->trace, e));
			break;
		}
	}
}

/* --- utilisation --- */

/* The resource that bounds a device execution or collective, in order of preference. */
static const struct track *exec_track(struct pass *p, const struct crit_exec *exec)
{
	static const enum resource comm[] = { RESOURCE_NIC_TX, RESOURCE_NVLINK_TX,
					      RESOURCE_PCIE_TX };
	const struct event *e = &p->trace->events[exec->event];
	int64_t device = is_device_exec(e) ? p->trace->lanes[e->lane].pid : -1;

	if (exec->class == CLASS_COMPUTE)
		return utilise_find_track(p->trace, RESOURCE_SM_ACTIVE, device, -1);
	if (exec->class == CLASS_MEMORY)
		return utilise_find_track(p->trace, RESOURCE_DRAM, device, -1);
	for (size_t i = 0; i < ARRAY_SIZE(comm); i++) {
		/* Network counters belong to the host, the others to a device. */
		const struct track *t = utilise_find_track(
			p->trace, comm[i], comm[i] == RESOURCE_NIC_TX ? -1 : device, -1);

		if (t != NULL)
			return t;
	}
	return NULL;
}

static int utilise_tally(struct pass *p, const struct track *track, uint32_t node, uint8_t class,
			 int64_t start_ns, int64_t end_ns)
{
	struct tally *tally;

	if (track == NULL)
		return 0;
	tally = tally_get(p, node, class);
	if (tally == NULL)
		return -ENOMEM;
	tally->resource = track->resource;
	return utilise_add(track, start_ns, end_ns, &p->scratch, &tally->sum);
}

static int utilise_execs(struct pass *p)
{
	vec_foreach(exec, &p->execs) {
		int error = 0;

		if (exec->critical_ns > 0)
			error = utilise_tally(p, exec_track(p, exec), exec->node, exec->class,
					      exec->start_ns, exec->end_ns);
		if (error < 0)
			return error;
	}
	return 0;
}

/* Host work and, without a device, computing leaves use the CPU of their thread. */
static int utilise_host(struct pass *p)
{
	const struct track *track = NULL;
	int64_t tid = -1;

	vec_foreach(seg, &p->host) {
		int error;

		if (seg->class == CLASS_IDLE || seg->event == EVENT_NONE)
			continue;
		if (tid != p->trace->lanes[p->trace->events[seg->event].lane].tid) {
			tid = p->trace->lanes[p->trace->events[seg->event].lane].tid;
			track = utilise_find_track(p->trace, RESOURCE_CPU_THREAD, -1, tid);
		}
		error = utilise_tally(p, track, seg->node, seg->class, seg->start_ns, seg->end_ns);
		if (error < 0)
			return error;
	}
	return 0;
}

/* --- from tallies to functions --- */

static void tally_merge(struct tally *into, const struct tally *from)
{
	into->critical_ns += from->critical_ns;
	into->share_ns += from->share_ns;
	into->thread_ns += from->thread_ns;
	into->sum.weight_ns += from->sum.weight_ns;
	into->sum.mean_ns += from->sum.mean_ns;
	into->sum.std_ns += from->sum.std_ns;
	if (into->resource == RESOURCE_CNT)
		into->resource = from->resource;
}

/*
 * Folds what is too small to list into the caller, so that the time of a subtree
 * stays right: callers come before callees in the tree, so one pass from the
 * leaves suffices. What has no caller goes to the rest.
 */
static int fold_small(struct pass *p)
{
	double keep = p->options->keep_frac > 0 ? p->options->keep_frac : KEEP_FRAC;
	double window_ns = (double)(p->window.end_ns - p->window.start_ns);
	int64_t limit = (int64_t)(keep * window_ns), hidden = (int64_t)(HIDDEN_FRAC * window_ns);

	for (size_t node = p->cct.nodes.cnt; node > 0; node--) {
		uint32_t parent = p->cct.nodes.data[node - 1].parent;

		for (uint8_t class = CLASS_IDLE; class < CLASS_CNT; class ++) {
			uint32_t idx =
				idmap_get(&p->tally_of, tally_key((uint32_t)(node - 1), class));
			struct tally small, *up;

			if (idx == IDMAP_NONE || p->tallies.data[idx].share_ns >= limit ||
			    p->tallies.data[idx].thread_ns >= hidden)
				continue;
			small = p->tallies.data[idx];
			p->tallies.data[idx].share_ns = p->tallies.data[idx].thread_ns = 0;
			if (parent == CCT_ROOT) {
				p->rest_ns += small.share_ns;
				continue;
			}
			up = tally_get(p, parent, class);
			if (up == NULL)
				return -ENOMEM;
			tally_merge(up, &small);
		}
	}
	return 0;
}

/* The frames that functions need, callers first, numbered anew. */
static int keep_frames(struct pass *p, uint32_t *frame_of, struct fingerprint *fp)
{
	_cleanup_free_ bool *wanted = calloc(p->cct.nodes.cnt + 1, sizeof(bool));

	if (wanted == NULL)
		return -ENOMEM;
	vec_foreach(t, &p->tallies) {
		if (t->share_ns + t->thread_ns > 0 && t->node != CCT_ROOT)
			wanted[t->node] = true;
	}
	for (size_t i = p->cct.nodes.cnt; i > 0; i--) {
		if (wanted[i - 1] && p->cct.nodes.data[i - 1].parent != CCT_ROOT)
			wanted[p->cct.nodes.data[i - 1].parent] = true;
		fp->frame_cnt += wanted[i - 1];
	}
	fp->frames = arena_calloc(&fp->arena, fp->frame_cnt + 1, sizeof(*fp->frames));
	if (fp->frames == NULL)
		return -ENOMEM;
	for (uint32_t i = 0, next = 0; i < p->cct.nodes.cnt; i++) {
		const struct cct_node *n = &p->cct.nodes.data[i];

		if (!wanted[i])
			continue;
		frame_of[i] = next;
		fp->frames[next] = (struct fp_frame){
			.key = n->key,
			.parent = n->parent == CCT_ROOT ? FRAME_NONE : frame_of[n->parent],
			.kind = n->kind,
			.name = arena_strdup(&fp->arena, strtab_text(&p->cct.names, n->name)),
		};
		if (fp->frames[next++].name == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int tally_cmp(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->share_ns != y->share_ns)
		return x->share_ns < y->share_ns ? 1 : -1;
	if (x->thread_ns != y->thread_ns)
		return x->thread_ns < y->thread_ns ? 1 : -1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

static struct fp_function function_of(const struct tally *t, uint32_t frame, int64_t window_ns)
{
	return (struct fp_function){
		.frame = frame,
		.class = t->class,
		.resource = t->sum.weight_ns > 0 ? t->resource : (uint8_t)RESOURCE_CNT,
		.beta_frac = (double)MIN(t->critical_ns, window_ns) / (double)window_ns,
		.mu_frac = utilise_mu(&t->sum),
		.sigma_frac = utilise_sigma(&t->sum),
		.executions = t->executions,
		.total_ns = t->total_ns,
		.critical_ns = t->critical_ns,
		.share_ns = t->share_ns,
		.thread_ns = t->thread_ns,
		.elements = t->elements_cnt > 0 ? t->elements / (double)t->elements_cnt : -1,
		.bytes = t->bytes_cnt > 0 ? t->bytes / (double)t->bytes_cnt : -1,
	};
}

/* Sorts the tallies and makes functions of those with a share. */
static int make_functions(struct pass *p, struct fingerprint *fp)
{
	_cleanup_free_ uint32_t *frame_of = calloc(p->cct.nodes.cnt + 1, sizeof(*frame_of));
	int error = frame_of != NULL ? keep_frames(p, frame_of, fp) : -ENOMEM;

	if (error < 0)
		return error;
	if (p->tallies.cnt > 0)
		qsort(p->tallies.data, p->tallies.cnt, sizeof(*p->tallies.data), tally_cmp);
	while (fp->function_cnt < p->tallies.cnt &&
	       p->tallies.data[fp->function_cnt].share_ns +
			       p->tallies.data[fp->function_cnt].thread_ns >
		       0)
		fp->function_cnt++;
	fp->functions = arena_calloc(&fp->arena, fp->function_cnt + 1, sizeof(*fp->functions));
	if (fp->functions == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct tally *t = &p->tallies.data[i];

		if (t->node == CCT_ROOT)
			fp->functions[i] = function_of(t, FRAME_NONE, fp->window_ns);
		else
			fp->functions[i] = function_of(t, frame_of[t->node], fp->window_ns);
		if (idmap_set(&p->index.map, tally_key(t->node, t->class), (uint32_t)i) < 0)
			return -ENOMEM;
	}
	fp->rest_ns = p->rest_ns;
	return 0;
}

/* A folded function's time in a lead belongs to the nearest caller that is listed. */
static int index_folded(struct pass *p)
{
	for (uint32_t node = 0; node < p->cct.nodes.cnt; node++) {
		uint32_t parent = p->cct.nodes.data[node].parent;

		for (uint8_t class = CLASS_IDLE; class < CLASS_CNT; class ++) {
			uint64_t key = tally_key(node, class);
			uint32_t up = parent == CCT_ROOT
					      ? IDMAP_NONE
					      : idmap_get(&p->index.map, tally_key(parent, class));

			if (idmap_get(&p->index.map, key) == IDMAP_NONE && up != IDMAP_NONE &&
			    idmap_set(&p->index.map, key, up) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int copy_array(struct arena *arena, const void *data, size_t cnt, size_t size, void *ret)
{
	void *copy = arena_calloc(arena, cnt + 1, size);

	if (copy == NULL)
		return -ENOMEM;
	if (cnt > 0)
		memcpy(copy, data, cnt * size);
	memcpy(ret, &copy, sizeof(copy));
	return 0;
}

static int add_collectives(struct pass *p, struct fingerprint *fp)
{
	int error = index_folded(p);

	if (error == 0)
		error = collectives_find(p->trace, &p->window, p->execs.data, p->execs.cnt,
					 &p->path.segments, &p->host, &p->index, &p->collectives);
	if (error == 0)
		error = copy_array(&fp->arena, p->collectives.list.data, p->collectives.list.cnt,
				   sizeof(struct fp_collective), &fp->collectives);
	if (error == 0)
		error = copy_array(&fp->arena, p->collectives.shares.data,
				   p->collectives.shares.cnt, sizeof(struct fp_share), &fp->shares);
	fp->collective_cnt = p->collectives.list.cnt;
	fp->share_cnt = p->collectives.shares.cnt;
	fp->collective_dropped = p->collectives.dropped;
	return error;
}

/* --- the host's side --- */

static double track_mean(const struct trace *trace, enum resource resource, int64_t tid,
			 const struct window *window)
{
	const struct track *t = utilise_find_track(trace, resource, -1, tid);
	double sum = 0;
	size_t cnt = 0;

	for (size_t i = 0; t != NULL && i < t->cnt; i++) {
		if (t->samples[i].time_ns > window->start_ns &&
		    t->samples[i].time_ns <= window->end_ns) {
			sum += t->samples[i].value;
			cnt++;
		}
	}
	return cnt > 0 ? sum / (double)cnt : -1;
}

/* The innermost Python function in which a thread spent most of the window. */
static int main_function_of(struct pass *p, uint32_t lane, struct fingerprint *fp, const char **ret)
{
	struct hostpath path = { .trace = p->trace,
				 .window = &p->window,
				 .cct = &p->cct,
				 .mode = p->mode,
				 .node_of = p->node_of };
	host_segments segs = { 0 };
	struct idmap time_of = { 0 };
	uint32_t best = FRAME_NONE, best_us = 0;
	int error = hostpath_walk(&path, lane, &segs);

	for (size_t i = 0; i < segs.cnt && error == 0; i++) {
		const struct host_segment *s = &segs.data[i];
		uint32_t us = idmap_get(&time_of, s->node);

		if (s->class == CLASS_IDLE || p->cct.nodes.data[s->node].kind != KIND_PYTHON)
			continue;
		us = (us == IDMAP_NONE ? 0 : us) + (uint32_t)((s->end_ns - s->start_ns) / 1000);
		error = idmap_set(&time_of, s->node, us);
		if (us > best_us) {
			best = s->node;
			best_us = us;
		}
	}
	if (error == 0 && best != FRAME_NONE) {
		*ret = arena_strdup(&fp->arena,
				    strtab_text(&p->cct.names, p->cct.nodes.data[best].name));
		error = *ret != NULL ? 0 : -ENOMEM;
	}
	vec_done(&segs);
	idmap_done(&time_of);
	return error;
}

/* The thread of the process, other than the training and autograd threads, that used most CPU. */
static int find_other_thread(struct pass *p, struct fingerprint *fp)
{
	const struct trace *t = p->trace;
	uint32_t best = LANE_NONE;

	for (size_t i = 0; i < t->track_cnt; i++) {
		double frac;

		if (t->tracks[i].resource != RESOURCE_CPU_THREAD)
			continue;
		for (uint32_t lane = 0; lane < t->lane_cnt; lane++) {
			if (t->lanes[lane].type != LANE_THREAD ||
			    t->lanes[lane].tid != t->tracks[i].tid ||
			    lane == p->window.training_lane || lane == p->window.backward_lane)
				continue;
			frac = track_mean(t, RESOURCE_CPU_THREAD, t->tracks[i].tid, &p->window);
			if (frac > fp->host_stats.other_cpu_frac) {
				fp->host_stats.other_cpu_frac = frac;
				best = lane;
			}
		}
	}
	if (best == LANE_NONE)
		return 0;
	return main_function_of(p, best, fp, &fp->host_stats.other_name);
}

static int add_host_stats(struct pass *p, struct fingerprint *fp)
{
	const struct trace *t = p->trace;
	int64_t tid =
		p->window.training_lane != LANE_NONE ? t->lanes[p->window.training_lane].tid : -1;
	const struct sidecar_info *info = p->options->sidecar;

	fp->host_stats.cpu_frac = track_mean(t, RESOURCE_CPU_THREAD, tid, &p->window);
	fp->host_stats.run_delay_frac = track_mean(t, RESOURCE_RUN_DELAY, tid, &p->window);
	for (size_t i = 0; i < t->event_cnt; i++) {
		const struct event *e = &t->events[i];

		if (e->kind == KIND_GC && e->start_ns >= p->window.start_ns &&
		    e->start_ns < p->window.end_ns) {
			fp->host_stats.gc_ns = add_saturated(fp->host_stats.gc_ns, e->dur_ns);
			fp->host_stats.gc_cnt++;
		}
	}
	for (size_t i = 0; i < t->track_cnt; i++)
		fp->resources |= 1u << t->tracks[i].resource;
	if (info != NULL && info->thief_cnt > 0) {
		fp->host_stats.thief_frac = info->thieves[0].cpu_frac;
		fp->host_stats.thief =
			arena_printf(&fp->arena, "pid %u %s", info->thieves[0].pid,
				     info->thieves[0].command[0] != '\0' ? info->thieves[0].command
									 : info->thieves[0].comm);
		if (fp->host_stats.thief == NULL)
			return -ENOMEM;
	}
	return find_other_thread(p, fp);
}

/* --- the whole --- */

static const char *dup_or_empty(struct arena *arena, const char *text)
{
	return arena_strdup(arena, text != NULL ? text : "");
}

static int add_identity(struct pass *p, struct fingerprint *fp)
{
	const struct trace_meta *meta = &p->trace->meta;

	fp->job_id = dup_or_empty(&fp->arena, p->options->job_id);
	fp->host = dup_or_empty(&fp->arena, meta->host);
	fp->source = dup_or_empty(&fp->arena, meta->source);
	fp->device_name = dup_or_empty(&fp->arena, meta->device_name);
	if (fp->job_id == NULL || fp->host == NULL || fp->source == NULL || fp->device_name == NULL)
		return -ENOMEM;
	fp->rank = meta->rank;
	fp->world_size = meta->world_size;
	if (p->window.training_lane != LANE_NONE)
		fp->pid = p->trace->lanes[p->window.training_lane].pid;
	fp->window_start_wall_ns = p->window.start_ns;
	fp->has_device = meta->has_device;
	fp->has_stacks = meta->has_stacks;
	fp->iterations_known = p->window.iterations_known;
	memcpy(fp->class_ns, p->path.class_ns, sizeof(fp->class_ns));
	fp->drops = p->trace->drops;
	fp->event_cnt = p->trace->event_cnt;
	fp->iteration_cnt = p->window.iterations.cnt;
	return copy_array(&fp->arena, p->window.iterations.data, p->window.iterations.cnt,
			  sizeof(struct fp_iteration), &fp->iterations);
}

static int pass_run(struct pass *p, struct fingerprint *fp)
{
	int error = cct_init(&p->cct);

	p->mode = p->trace->meta.has_device ? CLASSIFY_DEVICE : CLASSIFY_CPU_ONLY;
	p->node_of = malloc((p->trace->event_cnt + 1) * sizeof(*p->node_of));
	if (p->node_of == NULL)
		return -ENOMEM;
	memset(p->node_of, 0xff, (p->trace->event_cnt + 1) * sizeof(*p->node_of));
	fp->window_ns = p->window.end_ns - p->window.start_ns;
	if (error == 0)
		error = walk_threads(p);
	if (error == 0)
		error = add_execs(p);
	if (error == 0)
		error = critpath_find(p->execs.data, p->execs.cnt, &p->host, &p->path);
	if (error == 0)
		error = tally_path(p);
	if (error == 0)
		error = tally_threads(p);
	if (error == 0)
		error = utilise_execs(p);
	if (error == 0)
		error = utilise_host(p);
	if (error == 0)
		tally_executions(p);
	if (error == 0)
		error = fold_small(p);
	if (error == 0)
		error = make_functions(p, fp);
	if (error == 0)
		error = add_collectives(p, fp);
	if (error == 0)
		error = add_identity(p, fp);
	return error == 0 ? add_host_stats(p, fp) : error;
}

int summarize(const struct trace *trace, const struct summarize_options *options,
	      struct fingerprint *ret, struct err *err)
{
	static const struct summarize_options defaults = { .window = { .last_step = -1 } };
	struct pass p = { .trace = trace, .options = options != NULL ? options : &defaults };
	struct fingerprint fp;
	int error;

	error = window_find(trace, &p.options->window, &p.window, err);
	if (error < 0 && error != -ENOMEM)
		return error;
	fingerprint_init(&fp);
	if (error == 0)
		error = pass_run(&p, &fp);
	pass_done(&p);
	if (error < 0) {
		fingerprint_done(&fp);
		return err_set(err, -error, "%s: out of memory while summarizing %zu events",
			       trace->meta.source != NULL ? trace->meta.source : "trace",
			       trace->event_cnt);
	}
	*ret = fp;
	return 0;
}
