/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the fingerprint of a simulated worker directly, without events: the model knows the
 * functions by number, the device's work in order and the utilization of links by formula, so one
 * pass over a few hundred intervals suffices. It equals the fingerprint of `summarize` from the
 * same worker's trace within the tolerances of agree_test.c.
 * Source: PerfTracker section 4.2, equations 1-5.
 */
#include "format/fingerprint/funckey.h"
#include "simulate/counters.h"
#include "simulate/direct_parts.h"
#include "simulate/host.h"
#include "simulate/identity.h"
#include "simulate/network.h"
#include "simulate/random.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define KEEP_FRAC 0.001	  /* as summarize: share of the window on the critical path, */
#define HIDDEN_FRAC 0.01  /* or of the thread where the device hides it */
#define SAMPLE_NOISE 0.01 /* deviation of samples of a busy device */

/* --- what functions did --- */

static bool has_counter(const struct maker *m, enum resource resource)
{
	return (m->sim->options.counters & 1u << resource) != 0;
}

static void utilize(struct maker *m, struct unit *u, const struct utilization *value,
		    double weight_ns)
{
	if (!has_counter(m, value->resource) || weight_ns <= 0)
		return;
	u->resource = (uint8_t)value->resource;
	u->weight_ns += weight_ns;
	u->mean_ns += weight_ns * value->mu_frac;
	u->std_ns += weight_ns * value->sigma_frac;
}

static struct utilization device_utilization(const struct maker *m, const struct span *span,
					     const struct kernel_text *text)
{
	struct fault_place place = { .layout = &m->sim->layout,
				     .seed = m->sim->options.seed,
				     .rank = m->rank,
				     .iteration = span->iteration };
	double slow = 1 + fault_size(m->sim->faults, m->sim->fault_cnt, FAULT_GPU, &place);

	if (text->class == CLASS_MEMORY)
		slow = 1;
	return (struct utilization){ text->util_frac / slow, SAMPLE_NOISE * text->util_frac / slow,
				     text->class == CLASS_MEMORY ? RESOURCE_PCIE_RX
								 : RESOURCE_SM_ACTIVE };
}

/* The time while data flowed: the rest of a collective was waiting for its members. */
static double flow_ns(const struct maker *m, const struct span *span, const struct meeting_id *id)
{
	const struct meetings *all = &m->sim->meetings[id->kind];
	const float *slow = &all->slow[meeting_index(m->sim, id) * (size_t)all->ring_cnt];
	double most = 1;

	for (int j = 0; j < all->ring_cnt; j++)
		most = fmax(most, (double)slow[j]);
	return fmin(span->ms * 1e6 * most, (double)(span->end_ns - span->start_ns));
}

/*
 * Edges of samples: where work begins or ends next to an idle resource, a sample covers only a part
 * of it, uniformly distributed.
 */
static void add_edges(struct utilization *util, double length_ns, int edges)
{
	double period_ns = (double)DEVICE_PERIOD_NS, samples = length_ns / period_ns + edges / 2.0;
	double missing = util->mu_frac * util->mu_frac * edges / 3.0 / fmax(samples, 1);

	util->sigma_frac = sqrt(util->sigma_frac * util->sigma_frac + missing);
	util->mu_frac *= length_ns / (length_ns + edges * period_ns / 2);
}

/* Edges of a kernel: the device computed nothing just before or after it. */
static int edges_of(const struct maker *m, size_t idx)
{
	const struct span *own = &m->record.spans.data[idx], *before = NULL, *after = NULL;

	for (size_t i = idx; i > 0 && before == NULL; i--) {
		if (m->record.spans.data[i - 1].stream == STREAM_COMPUTE)
			before = &m->record.spans.data[i - 1];
	}
	for (size_t i = idx + 1; i < m->record.spans.cnt && after == NULL; i++) {
		if (m->record.spans.data[i].stream == STREAM_COMPUTE)
			after = &m->record.spans.data[i];
	}
	return (before == NULL || own->start_ns - before->end_ns > DEVICE_PERIOD_NS / 2) +
	       (after == NULL || after->start_ns - own->end_ns > DEVICE_PERIOD_NS / 2);
}

static void count_collective(struct maker *m, struct unit *u, const struct span *span)
{
	struct meeting_id id = player_meeting(m->sim, m->rank, span);
	struct utilization util = network_utilization(m->sim, &id, m->rank);
	double ns = flow_ns(m, span, &id);

	u->bytes += network_bytes(m->sim, &id.group, span->ms);
	add_edges(&util, ns, 2);
	utilize(m, u, &util, ns);
}

static void count_span(struct maker *m, size_t idx)
{
	const struct span *span = &m->record.spans.data[idx];
	struct unit *u = &m->units[direct_kernel_unit(m, span->kernel)];
	const struct kernel_text *text = kernel_text((enum kernel)span->kernel);
	double ns = (double)(span->end_ns - span->start_ns);
	struct utilization util;

	if (span->start_ns >= m->end_ns)
		return;
	u->executions++;
	u->total_ns += span->end_ns - span->start_ns;
	u->elements += text->threads > 0 ? text->threads * span->size_frac : 0;
	if (span->group != GROUP_KIND_CNT) {
		count_collective(m, u, span);
	} else if (span->stream == STREAM_COMPUTE) {
		util = device_utilization(m, span, text);
		add_edges(&util, ns, edges_of(m, idx));
		utilize(m, u, &util, ns);
	}
}

static void count_host(struct maker *m)
{
	vec_foreach(f, &m->record.frames) {
		m->units[f->place].executions++;
		m->units[f->place].total_ns += f->end_ns - f->start_ns;
	}
	vec_foreach(l, &m->record.leaves) {
		struct unit *u = &m->units[m->record.frames.data[l->frame].place];
		int64_t ns = MIN(l->end_ns, m->end_ns) - MAX(l->start_ns, m->start_ns);
		struct utilization util = { (double)l->cpu_frac, 0, RESOURCE_CPU_THREAD };

		if (ns <= 0)
			continue;
		u->thread_ns += ns;
		utilize(m, u, &util, (double)ns);
	}
}

/* Host measurements, as hostd would report them. */
static int add_host(struct maker *m)
{
	struct fp_host *host = &m->fp->host_stats;
	struct host_view view;
	char text[512];

	host_look(m->sim, &m->record, &view);
	if (has_counter(m, RESOURCE_CPU_THREAD))
		host->cpu_frac = view.cpu_frac;
	if (!has_counter(m, RESOURCE_RUN_DELAY))
		return 0;
	host->run_delay_frac = host->psi_cpu_frac = view.delay_frac;
	if (view.delay_frac <= 0)
		return 0;
	sidecar_thief_text(&view.thief, text, sizeof(text));
	host->thief_frac = view.thief.cpu_frac;
	host->thief = arena_strdup(&m->fp->arena, text);
	return host->thief != NULL ? 0 : -ENOMEM;
}

/* --- which functions are listed --- */

static void fold(struct unit *into, struct unit *small)
{
	into->share_ns += small->share_ns;
	into->critical_ns += small->critical_ns;
	into->thread_ns += small->thread_ns;
	into->weight_ns += small->weight_ns;
	into->mean_ns += small->mean_ns;
	into->std_ns += small->std_ns;
	if (into->resource == RESOURCE_CNT)
		into->resource = small->resource;
	small->share_ns = small->thread_ns = 0;
}

static uint16_t caller_of(const struct maker *m, uint32_t unit)
{
	return unit < m->sim->places.cnt ? place_caller(&m->sim->places, (uint16_t)unit)
					 : PLACE_NONE;
}

/* Folds functions too small to list into their callers. Callers precede callees. */
static void fold_small(struct maker *m)
{
	double window_ns = (double)m->fp->window_ns;
	int64_t keep = (int64_t)(KEEP_FRAC * window_ns),
		hidden = (int64_t)(HIDDEN_FRAC * window_ns);

	for (uint32_t i = m->unit_cnt; i > 0; i--) {
		struct unit *u = &m->units[i - 1];
		uint16_t parent = caller_of(m, i - 1);

		if (u->share_ns >= keep || u->thread_ns >= hidden)
			continue;
		if (parent != PLACE_NONE) {
			fold(&m->units[parent], u);
			continue;
		}
		m->fp->rest_ns += u->share_ns;
		u->share_ns = u->thread_ns = 0;
	}
}

static bool is_listed(const struct unit *u)
{
	return u->share_ns + u->thread_ns > 0;
}

static int add_frame(struct maker *m, enum event_kind kind, const char *name, uint32_t parent)
{
	struct fp_frame *frame = &m->fp->frames[m->fp->frame_cnt];
	struct str part = { 0 }, shown = { 0 };
	int error;

	funckey_part(kind, name, &part);
	funckey_display(kind, name, &shown);
	*frame = (struct fp_frame){
		.key = funckey_under(parent != FRAME_NONE ? &m->fp->frames[parent].key : NULL,
				     str_borrow(&part)),
		.parent = parent,
		.kind = (uint8_t)kind,
		.name = arena_strdup(&m->fp->arena, str_borrow(&shown)),
	};
	error = str_error(&part) < 0 || str_error(&shown) < 0 || frame->name == NULL ? -ENOMEM : 0;
	m->fp->frame_cnt++;
	str_done(&part);
	str_done(&shown);
	return error;
}

/* frame_of: by unit; FRAME_NONE if it has no listed descendants. */
static int add_frames(struct maker *m, uint32_t *frame_of)
{
	_cleanup_free_ bool *wanted = calloc(m->unit_cnt, sizeof(*wanted));
	const struct place *places = m->sim->places.data;
	int error = 0;

	m->fp->frames = arena_calloc(&m->fp->arena, m->unit_cnt, sizeof(*m->fp->frames));
	if (wanted == NULL || m->fp->frames == NULL)
		return -ENOMEM;
	for (size_t i = m->unit_cnt; i > 0; i--) {
		wanted[i - 1] |= is_listed(&m->units[i - 1]);
		if (wanted[i - 1] && caller_of(m, (uint32_t)i - 1) != PLACE_NONE)
			wanted[caller_of(m, (uint32_t)i - 1)] = true;
	}
	for (uint32_t i = 0; i < m->unit_cnt && error == 0; i++) {
		bool place = i < m->sim->places.cnt;
		uint32_t parent = FRAME_NONE;

		if (!wanted[i])
			continue;
		if (caller_of(m, i) != PLACE_NONE)
			parent = frame_of[caller_of(m, i)];
		frame_of[i] = (uint32_t)m->fp->frame_cnt;
		if (place)
			error = add_frame(m, (enum event_kind)places[i].kind, places[i].name,
					  parent);
		else
			error = add_frame(m,
					  direct_unit_class(m, i) == CLASS_MEMORY ? KIND_GPU_MEMOP
										  : KIND_KERNEL,
					  kernel_text((enum kernel)(i - m->sim->places.cnt))->name,
					  FRAME_NONE);
	}
	return error;
}

static struct fp_function function_of(const struct maker *m, uint32_t unit, uint32_t frame)
{
	const struct unit *u = &m->units[unit];
	bool measured = u->weight_ns > 0;
	double cnt = (double)MAX(u->executions, (uint64_t)1);

	return (struct fp_function){
		.frame = frame,
		.class = direct_unit_class(m, unit),
		.resource = measured ? u->resource : (uint8_t)RESOURCE_CNT,
		.beta_frac =
			(double)MIN(u->critical_ns, m->fp->window_ns) / (double)m->fp->window_ns,
		.mu_frac = measured ? u->mean_ns / u->weight_ns : (double)NAN,
		.sigma_frac = measured ? u->std_ns / u->weight_ns : (double)NAN,
		.executions = u->executions,
		.total_ns = u->total_ns,
		.critical_ns = u->critical_ns,
		.share_ns = u->share_ns,
		.thread_ns = u->thread_ns,
		.elements = u->elements > 0 ? u->elements / cnt : -1,
		.bytes = u->bytes > 0 ? u->bytes / cnt : -1,
	};
}

static int function_cmp(const void *a, const void *b)
{
	const struct fp_function *x = a, *y = b;

	if (x->share_ns != y->share_ns)
		return x->share_ns < y->share_ns ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

static int add_functions(struct maker *m)
{
	_cleanup_free_ uint32_t *frame_of = calloc(m->unit_cnt, sizeof(*frame_of));
	_cleanup_free_ uint32_t *by_frame = calloc(m->unit_cnt, sizeof(*by_frame));
	int error = frame_of != NULL && by_frame != NULL ? add_frames(m, frame_of) : -ENOMEM;
	struct fingerprint *fp = m->fp;

	if (error < 0)
		return error;
	fp->functions = arena_calloc(&fp->arena, m->unit_cnt, sizeof(*fp->functions));
	if (fp->functions == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->unit_cnt; i++) {
		if (is_listed(&m->units[i]))
			fp->functions[fp->function_cnt++] = function_of(m, i, frame_of[i]);
	}
	qsort(fp->functions, fp->function_cnt, sizeof(*fp->functions), function_cmp);
	for (uint32_t i = 0; i < fp->function_cnt; i++)
		by_frame[fp->functions[i].frame] = i;
	for (uint32_t i = 0; i < m->unit_cnt; i++) {
		uint16_t parent = caller_of(m, i);

		m->units[i].function = FRAME_NONE;
		if (is_listed(&m->units[i]))
			m->units[i].function = by_frame[frame_of[i]];
		else if (parent != PLACE_NONE)
			m->units[i].function = m->units[parent].function;
	}
	return 0;
}

/* --- the whole --- */

static int add_identity(struct maker *m)
{
	struct fingerprint *fp = m->fp;
	size_t cnt = m->record.starts.cnt - 1;
	char host[16];

	identity_host(m->sim, m->rank, host);
	fp->host = arena_strdup(&fp->arena, host);
	fp->source = "simulated";
	fp->device_name = DEVICE_NAME;
	fp->rank = m->rank;
	fp->world_size = m->sim->layout.worker_cnt;
	fp->pid = identity_pid(m->rank);
	fp->window_start_wall_ns = identity_wall_ns(m->sim, m->rank, m->start_ns);
	fp->window_ns = m->end_ns - m->start_ns;
	fp->has_device = fp->has_stacks = fp->iterations_known = true;
	fp->event_cnt = m->record.frames.cnt + m->record.spans.cnt;
	fp->iterations = arena_calloc(&fp->arena, cnt + 1, sizeof(*fp->iterations));
	if (fp->host == NULL || fp->iterations == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		int64_t begin = m->record.starts.data[i], end = m->record.starts.data[i + 1];

		fp->iterations[i] =
			(struct fp_iteration){ FIRST_STEP + m->record.first_iteration + (int64_t)i,
					       begin - m->start_ns, end - begin };
	}
	fp->iteration_cnt = cnt;
	fp->resources = m->sim->options.counters &
			(1u << RESOURCE_SM_ACTIVE | 1u << RESOURCE_DRAM | 1u << RESOURCE_NVLINK_TX |
			 1u << RESOURCE_PCIE_TX | 1u << RESOURCE_PCIE_RX |
			 1u << RESOURCE_CPU_THREAD | 1u << RESOURCE_RUN_DELAY);
	return 0;
}

static int make(struct maker *m)
{
	int error = player_record(m->sim, m->rank, &m->record);

	if (error < 0)
		return error;
	m->start_ns = m->record.starts.data[0];
	m->end_ns = m->record.starts.data[m->record.starts.cnt - 1];
	m->unit_cnt = (uint32_t)m->sim->places.cnt + KERNEL_CNT;
	m->units = calloc(m->unit_cnt, sizeof(*m->units));
	if (m->units == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->unit_cnt; i++)
		m->units[i].resource = RESOURCE_CNT;
	error = add_identity(m);
	if (error == 0)
		error = direct_find_path(m);
	if (error < 0)
		return error;
	for (size_t i = 0; i < m->record.spans.cnt; i++)
		count_span(m, i);
	count_host(m);
	fold_small(m);
	error = add_host(m);
	if (error == 0)
		error = add_functions(m);
	return error == 0 ? direct_add_collectives(m) : error;
}

int simulate_fingerprint(const struct simulation *sim, int rank, struct fingerprint *ret)
{
	struct fingerprint fp;
	struct maker m = { .sim = sim, .rank = rank, .fp = &fp };
	int error;

	fingerprint_init(&fp);
	error = make(&m);
	record_done(&m.record);
	free(m.units);
	vec_done(&m.path);
	vec_done(&m.leads);
	vec_done(&m.comm);
	vec_done(&m.shares);
	vec_done(&m.lead_used);
	if (error < 0)
		fingerprint_done(&fp);
	else
		*ret = fp;
	return error;
}
