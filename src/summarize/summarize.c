/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/summarize.h"

#include "summarize/collectives/groupshape.h"
#include "summarize/namefacts.h"
#include "summarize/pass.h"
#include "summarize/spread.h"
#include "summarize/stalls/stalls.h"
#include "summarize/usage/usage.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void pass_done(struct pass *p)
{
	window_done(&p->window);
	cct_done(&p->cct);
	free(p->node_of);
	vec_done(&p->execs);
	critpath_done(&p->path);
	vec_done(&p->tallies);
	vec_done(&p->links);
	idmap_done(&p->reaches);
	nodemap_done(&p->tally_of);
	idmap_done(&p->exec_classes);
	vec_done(&p->scratch.values);
	nodemap_done(&p->index.map);
	collectives_done(&p->collectives);
}

int host_line_init(struct pass *p, struct host_line *ret)
{
	*ret = (struct host_line){ .path = pass_hostpath(p) };
	ret->training = hostwalk_new(&ret->path, p->window.training_lane);
	ret->backward = hostwalk_new(&ret->path, p->window.backward_lane);
	if (ret->training == NULL || ret->backward == NULL)
		return -ENOMEM;
	hostwalk_called_from(ret->backward, ret->training);
	ret->stand_in = (struct stand_in){ .training = hostwalk_source(ret->training),
					   .backward = hostwalk_source(ret->backward) };
	ret->source = stand_in_source(&ret->stand_in);
	return 0;
}

void host_line_done(struct host_line *line)
{
	line->training = hostwalk_free(line->training);
	line->backward = hostwalk_free(line->backward);
}

/*
 * Walks the rest of the autograd thread, where the training thread did not wait, to create nodes.
 */
static int walk_rest(struct hostwalk *walk)
{
	struct host_segment seg;
	int found;

	do {
		found = hostwalk_next(walk, &seg);
	} while (found > 0);
	return found;
}

/*
 * Host functions hidden by device work are not on the critical path, but can make a collective
 * late: long ones are listed with a critical time of 0.
 */
static int find_path(struct pass *p)
{
	struct host_line line;
	int error = host_line_init(p, &line);

	if (error == 0)
		error = critpath_find(p->execs.data, p->execs.cnt, line.source,
				      (struct crit_sink){ 0 }, &p->path);
	if (error == 0)
		error = walk_rest(line.backward);
	host_line_done(&line);
	/* A collective that is an annotation has a place on its thread, but its own node. */
	vec_foreach(exec, &p->execs)
		p->node_of[exec->event] = exec->node;
	return error;
}

/*
 * Sets ret to the class of device work and collectives, CLASS_IDLE for everything else. Kernel
 * names are long and few: each is classified once.
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

/* The function of an execution. FRAME_NONE: out of memory. */
static uint32_t exec_node(struct pass *p, const struct groupshapes *shapes, const struct event *e)
{
	struct str name = { 0 };
	uint32_t node = FRAME_NONE;

	if (groupshapes_name(shapes, p->trace, e, &name) == 0)
		return cct_child(&p->cct, CCT_ROOT, (enum event_kind)e->kind, e->name,
				 event_name(p->trace, e));
	if (str_error(&name) == 0)
		node = cct_child_text(&p->cct, CCT_ROOT, (enum event_kind)e->kind,
				      str_borrow(&name));
	str_done(&name);
	return node;
}

/*
 * Collects device work and collectives, in the order of events: they run independently of threads.
 */
static int add_execs(struct pass *p, const struct groupshapes *shapes)
{
	/*
	 * Enough for most traces: unused pages cost nothing, growing would leave holes in the heap.
	 */
	if (vec_reserve(&p->execs, p->trace->event_cnt / 4) < 0)
		return -ENOMEM;
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
		exec.node = exec_node(p, shapes, e);
		if (exec.node == FRAME_NONE || vec_push(&p->execs, exec) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_execs(struct pass *p)
{
	struct groupshapes shapes = { 0 };
	int error = groupshapes_find(p->trace, &shapes);

	if (error == 0)
		error = add_execs(p, &shapes);
	groupshapes_done(&shapes);
	return error;
}

/* Numbers and copies the frames of the functions, callers first. */
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
		.mu_frac = utilize_mu(&t->sum),
		.sigma_frac = utilize_sigma(&t->sum),
		.executions = t->executions,
		.total_ns = t->total_ns,
		.critical_ns = t->critical_ns,
		.share_ns = t->share_ns,
		.thread_ns = t->thread_ns,
		.elements = t->elements_cnt > 0 ? t->elements / (double)t->elements_cnt : -1,
		.bytes = t->bytes_cnt > 0 ? t->bytes / (double)t->bytes_cnt : -1,
	};
}

/* Sorts the tallies and makes functions of those with a share or thread time. */
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
		if (nodemap_set(&p->index.map, t->node, t->class, (uint32_t)i) < 0)
			return -ENOMEM;
	}
	fp->rest_ns = p->rest_ns;
	return 0;
}

/* A folded function's time in a lead belongs to the nearest listed caller. */
static int index_folded(struct pass *p)
{
	for (uint32_t node = 0; node < p->cct.nodes.cnt; node++) {
		uint32_t parent = p->cct.nodes.data[node].parent;

		for (int class = CLASS_IDLE; class < CLASS_CNT; class ++) {
			uint32_t up = parent == CCT_ROOT
					      ? NODEMAP_NONE
					      : nodemap_get(&p->index.map, parent, (uint8_t) class);

			if (up != NODEMAP_NONE &&
			    nodemap_get(&p->index.map, node, (uint8_t) class) == NODEMAP_NONE &&
			    nodemap_set(&p->index.map, node, (uint8_t) class, up) < 0)
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

/* State of the second pass over the timelines, when the functions are known. */
struct second_look {
	struct pass *p;
	struct spread spread;
	bool collectives;     /* the window has collectives */
	stretches path, host; /* timelines for them */
};

static int look_at_path(void *to, const struct crit_segment *seg)
{
	struct second_look *look = to;

	spread_segment(&look->spread, look->p, seg);
	if (!look->collectives)
		return 0;
	return stretches_add(&look->path,
			     function_index_get(&look->p->index, seg->node, seg->class),
			     seg->start_ns, seg->end_ns);
}

static int look_at_host(void *to, const struct host_segment *seg)
{
	struct second_look *look = to;

	return stretches_add(&look->host,
			     function_index_get(&look->p->index, seg->node, seg->class),
			     seg->start_ns, seg->end_ns);
}

static int look_again(struct second_look *look)
{
	struct pass *p = look->p;
	struct host_line line;
	int error = host_line_init(p, &line);

	if (error == 0)
		error = critpath_find(
			p->execs.data, p->execs.cnt, line.source,
			(struct crit_sink){ .to = look,
					    .path = look_at_path,
					    .host = look->collectives ? look_at_host : NULL },
			NULL);
	host_line_done(&line);
	return error;
}

static int copy_operations(const struct pass *p, struct fingerprint *fp)
{
	size_t cnt = p->collectives.operations.cnt;

	fp->operations = arena_calloc(&fp->arena, cnt + 1, sizeof(*fp->operations));
	if (fp->operations == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		fp->operations[i] =
			arena_strdup(&fp->arena, p->collectives.operations.data[i].text);
		if (fp->operations[i] == NULL)
			return -ENOMEM;
	}
	fp->operation_cnt = cnt;
	return 0;
}

static int add_collectives(struct pass *p, const struct second_look *look, struct fingerprint *fp)
{
	int error = collectives_find(p->trace, &p->window, p->execs.data, p->execs.cnt, &look->path,
				     &look->host, &p->collectives);

	if (error == 0)
		error = copy_array(&fp->arena, p->collectives.list.data, p->collectives.list.cnt,
				   sizeof(struct fp_collective), &fp->collectives);
	if (error == 0)
		error = copy_array(&fp->arena, p->collectives.shares.data,
				   p->collectives.shares.cnt, sizeof(struct fp_share), &fp->shares);
	if (error == 0)
		error = copy_operations(p, fp);
	fp->collective_cnt = p->collectives.list.cnt;
	fp->share_cnt = p->collectives.shares.cnt;
	fp->collective_dropped = p->collectives.dropped;
	return error;
}

static bool has_collectives(const struct pass *p)
{
	vec_foreach(exec, &p->execs) {
		if (exec->class == CLASS_COMM)
			return true;
	}
	return false;
}

/* Adds the results that need the order of events: spreads and collectives. */
static int add_order(struct pass *p, struct fingerprint *fp)
{
	struct second_look look = { .p = p, .collectives = has_collectives(p) };
	int error = index_folded(p);

	if (error == 0)
		error = spread_init(&look.spread, p, fp);
	if (error == 0 && (look.spread.cells != NULL || look.collectives))
		error = look_again(&look);
	if (error == 0)
		error = add_collectives(p, &look, fp);
	if (error == 0)
		spread_end(&look.spread, fp);
	spread_done(&look.spread);
	vec_done(&look.path);
	vec_done(&look.host);
	return error;
}

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
	fp->iterations_by = p->window.iterations_by;
	fp->iterations_known = p->window.iterations_by != ITERATIONS_UNKNOWN;
	memcpy(fp->class_ns, p->path.class_ns, sizeof(fp->class_ns));
	fp->drops = p->trace->drops;
	fp->event_cnt = p->trace->event_cnt;
	fp->warmup_ns = p->window.warmup_ns;
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
		error = find_execs(p);
	if (error == 0)
		error = find_path(p);
	if (error == 0)
		error = tally_all(p);
	if (error == 0)
		error = make_functions(p, fp);
	if (error == 0)
		error = add_order(p, fp);
	if (error == 0)
		error = launchers_add(p, fp);
	if (error == 0)
		error = add_identity(p, fp);
	if (error == 0)
		error = usage_add(p, fp);
	if (error == 0)
		error = stalls_add(p, fp);
	return error == 0 ? hoststats_add(p, fp) : error;
}

int summarize(const struct trace *trace, const struct summarize_options *options,
	      struct fingerprint *ret, struct err *err)
{
	static const struct summarize_options defaults = { .window = { .last_step = -1 } };
	struct pass p = { .trace = trace, .options = options != NULL ? options : &defaults };
	_cleanup_free_ uint16_t *facts = names_facts(&trace->strings);
	struct fingerprint fp;
	int error;

	p.facts = facts;
	error = facts != NULL ? window_find(trace, &p.options->window, &p.window, err) : -ENOMEM;
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
