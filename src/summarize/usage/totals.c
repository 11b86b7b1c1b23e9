/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels, copies and runtime calls of a window took most time, by name. */
#include "model/usage/gpucall.h"
#include "summarize/usage/usage_parts.h"

#include <errno.h>
#include <string.h>

#define DEVICE_KEPT 24	/* kernels and copies */
#define RUNTIME_KEPT 24 /* runtime calls */

typedef VEC(struct fp_total) total_list;

struct totals {
	size_t near; /* for gaps_within_next() */
	struct usage_look *look;
	total_list device, runtime;
	uint32_t *device_of;  /* by node: index in device + 1 */
	uint32_t *runtime_of; /* by string: index in runtime + 1 */
	VEC(uint8_t) calls;   /* by index in runtime: enum gpucall */
};

/* Counts one execution, clipped to the window. */
static void count(struct fp_total *total, int64_t length_ns)
{
	total->cnt++;
	total->total_ns = add_saturated(total->total_ns, length_ns);
	total->longest_ns = MAX(total->longest_ns, length_ns);
}

static void count_bytes(const struct trace *trace, struct fp_total *total, const struct event *e)
{
	const struct event_args *args = event_args_borrow(trace, e);

	if (total->kind == KIND_GPU_MEMOP && args != NULL && args->bytes >= 0)
		total->bytes = add_saturated(MAX(total->bytes, 0), args->bytes);
}

static int add_device(struct totals *t)
{
	const struct pass *p = t->look->p;

	vec_foreach(exec, &p->execs) {
		const struct event *e = &p->trace->events[exec->event];
		uint32_t *idx = &t->device_of[exec->node];

		if (!is_device_exec(e))
			continue;
		if (*idx == 0) {
			const char *name =
				strtab_text(&p->cct.names, p->cct.nodes.data[exec->node].name);

			if (vec_push(&t->device, (struct fp_total){ .name = name,
								    .kind = e->kind,
								    .class = exec->class,
								    .bytes = -1 }) < 0)
				return -ENOMEM;
			*idx = (uint32_t)t->device.cnt;
		}
		count(&t->device.data[*idx - 1], exec->end_ns - exec->start_ns);
		count_bytes(p->trace, &t->device.data[*idx - 1], e);
	}
	return 0;
}

/* The call's entry, created if new; NULL: out of memory. */
static struct fp_total *runtime_total(struct totals *t, const struct event *e)
{
	const char *name = event_name(t->look->p->trace, e);
	uint32_t *idx = &t->runtime_of[e->name];

	if (*idx == 0) {
		uint8_t class = (uint8_t)classify_event(KIND_RUNTIME, name, true, t->look->p->mode);

		if (vec_push(&t->runtime, (struct fp_total){ .name = name,
							     .kind = KIND_RUNTIME,
							     .class = class,
							     .bytes = -1 }) < 0 ||
		    vec_push(&t->calls, (uint8_t)gpucall_of(name)) < 0)
			return NULL;
		*idx = (uint32_t)t->runtime.cnt;
	}
	return &t->runtime.data[*idx - 1];
}

static int add_call(struct totals *t, const struct event *e)
{
	struct usage_look *look = t->look;
	struct fp_total *total = runtime_total(t, e);
	int64_t until_ns = MIN(event_end_ns(e), look->p->window.end_ns), idle_ns;
	struct fp_iteration_use *use = NULL;
	enum gpucall call;

	if (total == NULL)
		return -ENOMEM;
	idle_ns = gaps_within_next(&look->gaps, &t->near, e->start_ns, until_ns);
	count(total, until_ns - e->start_ns);
	total->idle_ns = add_saturated(total->idle_ns, idle_ns);
	call = (enum gpucall)t->calls.data[total - t->runtime.data];
	if (call == GPUCALL_WAIT)
		usage_charge_call(look, e, false);
	if (call == GPUCALL_ALLOCATE || call == GPUCALL_PIN)
		use = usage_iteration(look, e->start_ns);
	if (use != NULL)
		use->alloc_ns += idle_ns;
	return 0;
}

static int add_runtime(struct totals *t)
{
	const struct pass *p = t->look->p;

	for (size_t i = 0; i < p->trace->event_cnt; i++) {
		const struct event *e = &p->trace->events[i];

		if (e->kind == KIND_RUNTIME && e->start_ns >= p->window.start_ns &&
		    e->start_ns < p->window.end_ns && add_call(t, e) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int total_cmp(const void *a, const void *b)
{
	const struct fp_total *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Copies the longest of a list behind those that fp has. */
static int keep(total_list *list, size_t most, struct fingerprint *fp)
{
	if (list->cnt > 0)
		qsort(list->data, list->cnt, sizeof(*list->data), total_cmp);
	for (size_t i = 0; i < list->cnt && i < most; i++) {
		struct fp_total *to = &fp->totals[fp->total_cnt];

		*to = list->data[i];
		to->name = arena_strdup(&fp->arena, to->name);
		if (to->name == NULL)
			return -ENOMEM;
		fp->total_cnt++;
	}
	return 0;
}

static int find_totals(struct totals *t)
{
	struct fingerprint *fp = t->look->fp;
	int error = add_device(t);

	if (error == 0)
		error = add_runtime(t);
	if (error < 0)
		return error;
	fp->totals = arena_calloc(&fp->arena, DEVICE_KEPT + RUNTIME_KEPT, sizeof(*fp->totals));
	if (fp->totals == NULL)
		return -ENOMEM;
	error = keep(&t->device, DEVICE_KEPT, fp);
	return error == 0 ? keep(&t->runtime, RUNTIME_KEPT, fp) : error;
}

int totals_add(struct usage_look *look)
{
	_cleanup_free_ uint32_t *device_of = calloc(look->p->cct.nodes.cnt + 1, sizeof(uint32_t));
	_cleanup_free_ uint32_t *runtime_of =
		calloc(look->p->trace->strings.cnt + 1, sizeof(uint32_t));
	struct totals t = { .look = look, .device_of = device_of, .runtime_of = runtime_of };
	int error = device_of != NULL && runtime_of != NULL ? find_totals(&t) : -ENOMEM;

	vec_done(&t.device);
	vec_done(&t.runtime);
	vec_done(&t.calls);
	return error;
}
