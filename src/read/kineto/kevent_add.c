/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed event becomes an event, half of a pair, samples or a name in the build. */
#include "read/kineto/kevent_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int kevent_intern(struct trace *trace, const char *text, uint32_t *ret)
{
	*ret = strtab_intern(&trace->strings, text, strlen(text));
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

/* Counts an event beyond a limit of the build; other errors end the reading. */
static int count_full(struct kevent_reader *reader, int ret)
{
	if (ret != -ENOSPC)
		return ret;
	reader->trace->drops.unsupported_overlap++;
	return 0;
}

static enum event_kind kind_of(struct kevent_reader *reader, const struct kevent *event)
{
	const char *name = strtab_text(&reader->trace->strings, event->name);

	if (event->has & HAS_STEP)
		return KIND_ANNOTATION;
	if (event->has & HAS_FRAME)
		return KIND_PYTHON;
	if (event->is.category == NULL)
		return tracemaker_kind(&reader->maker, name);
	/* torch 1.8 has no category for annotations. */
	if (event->is.category->kind == KIND_OPERATOR && strncmp(name, "ProfilerStep", 12) == 0)
		return KIND_ANNOTATION;
	return (enum event_kind)event->is.category->kind;
}

static enum lane_type lane_type_of(const struct kevent *event)
{
	if (event->is.category != NULL && event->is.category->lane == LANE_STREAM)
		return LANE_STREAM;
	if (event->is.pid.text != 0 || event->is.tid.text != 0)
		return LANE_OTHER;
	if (event->is.category == NULL)
		return LANE_THREAD;
	/* Kineto gives its own overhead to pid -1 or 0: no thread of the worker. */
	if (event->is.category->kind == KIND_OVERHEAD && event->is.pid.num <= 0)
		return LANE_OTHER;
	return (enum lane_type)event->is.category->lane;
}

static int lane_of(struct kevent_reader *reader, const struct kevent *event)
{
	return build_lane(reader->build, event->is.pid, event->is.tid, lane_type_of(event));
}

static int64_t multiply(int64_t a, int64_t b)
{
	int64_t product;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

/* "nccl:all_reduce", "gloo:all_reduce": what follows the colon. */
static int annotation_collective(struct kevent_reader *reader, const char *name, uint32_t *ret)
{
	if (strncmp(name, "nccl:", 5) != 0 && strncmp(name, "gloo:", 5) != 0)
		return 0;
	return kevent_intern(reader->trace, name + 5, ret);
}

/* Names of the collective and of its group, by generation of the writer. */
static int collective_names(struct kevent_reader *reader, const struct kevent *event,
			    enum event_kind kind, struct event_args *args)
{
	const char *name = strtab_text(&reader->trace->strings, event->name), *found;

	args->collective = event->args->collective;
	args->group = event->args->group;
	args->group_ranks = event->args->ranks;
	if (event->name == reader->comms_name && args->group == 0) {
		args->group = event->args->concrete_group;
		args->seq = MAX(args->seq, event->args->concrete_seq);
		if (args->group_size < 0 && event->args->concrete_size <= INT32_MAX)
			args->group_size = (int32_t)event->args->concrete_size;
	}
	if (args->collective != 0)
		return 0;
	if (kind == KIND_ANNOTATION)
		return annotation_collective(reader, name, &args->collective);
	found = kind == KIND_KERNEL ? collective_of_kernel(name) : NULL;
	return found != NULL ? kevent_intern(reader->trace, found, &args->collective) : 0;
}

static int make_args(struct kevent_reader *reader, const struct kevent *event, enum event_kind kind,
		     struct event_args *ret)
{
	const struct kargs *from = event->args;
	int64_t messages = MAX(from->in_elements, from->out_elements);
	int r;

	*ret = (struct event_args){
		.bytes = from->bytes,
		.elements = from->elements,
		.seq = from->seq,
		.group_size = from->group_size <= INT32_MAX ? (int32_t)from->group_size : -1,
	};
	if (kind == KIND_KERNEL)
		ret->elements = multiply(from->grid, from->block);
	r = collective_names(reader, event, kind, ret);
	if (ret->bytes >= 0)
		return r;
	if (messages >= 0)
		ret->bytes = multiply(messages, from->dtype_bytes);
	else if (ret->collective != 0 && kind == KIND_ANNOTATION)
		ret->bytes = multiply(from->elements, from->type_bytes);
	return r;
}

static bool wants_args(const struct kevent *event, enum event_kind kind)
{
	if (!(event->has & HAS_ARGS))
		return false;
	return kind == KIND_OPERATOR || kind == KIND_KERNEL || kind == KIND_GPU_MEMOP ||
	       kind == KIND_ANNOTATION;
}

/* Adds the args of an event unless all are absent, as in most annotations. */
static int add_args(struct kevent_reader *reader, const struct kevent *event, enum event_kind kind,
		    uint32_t *ret)
{
	struct event_args args;
	int r;

	*ret = 0;
	r = make_args(reader, event, kind, &args);
	if (r < 0)
		return r;
	if (args.collective == 0 && args.group == 0 && args.bytes < 0 && args.elements < 0)
		return 0;
	return build_args(reader->build, &args, ret);
}

/* The ids by which the event finds its parent or is found by its children. */
static int make_link(struct kevent_reader *reader, const struct kevent *event, enum event_kind kind,
		     struct link *ret)
{
	const struct kargs *args = event->args;
	int r = 0;

	*ret = (struct link){ CODE_NONE, CODE_NONE };
	if (kind == KIND_PYTHON) {
		if (args->has & HAS_PYTHON_ID)
			r = build_code(reader->build, args->python_id, &ret->id);
		if (r == 0 && args->has & HAS_PYTHON_PARENT)
			r = build_code(reader->build, args->python_parent, &ret->parent);
	} else if (args->has & HAS_CORRELATION && args->correlation != 0) {
		if (kind == KIND_RUNTIME)
			r = build_code(reader->build, args->correlation, &ret->id);
		else if (kind == KIND_KERNEL || kind == KIND_GPU_MEMOP)
			r = build_code(reader->build, args->correlation, &ret->parent);
	}
	return r;
}

/*
 * Of events with the same times: Python calls operators, and operators call the runtime, never the
 * other way round. Some writers give events in the order in which they end.
 */
static uint8_t depth_of(enum event_kind kind)
{
	if (kind == KIND_PYTHON)
		return 0;
	return kind == KIND_RUNTIME ? 2 : 1;
}

/* An iteration that JAX's StepTraceAnnotation marked gets the name that torch's have. */
static int name_step(struct kevent_reader *reader, struct kevent *event)
{
	const char *number;
	char name[48];

	if (event->is.category != NULL || !(event->has & HAS_ARGS) || event->args->step_num == 0)
		return 0;
	number = strtab_text(&reader->trace->strings, event->args->step_num);
	(void)snprintf(name, sizeof(name), "ProfilerStep#%.20s", number);
	event->has |= HAS_STEP;
	return kevent_intern(reader->trace, name, &event->name);
}

/* Names of JAX's events become those that torch.profiler gives to the same things. */
static int name_frame(struct kevent_reader *reader, struct kevent *event)
{
	char name[256];

	if (event->is.category != NULL ||
	    !tracemaker_name_frame(strtab_text(&reader->trace->strings, event->name), name,
				   sizeof(name)))
		return 0;
	event->has |= HAS_FRAME;
	return kevent_intern(reader->trace, name, &event->name);
}

static int add_complete(struct kevent_reader *reader, struct kevent *event)
{
	struct trace *trace = reader->trace;
	enum event_kind kind = kind_of(reader, event);
	struct event out = { .start_ns = event->ts_ns,
			     .name = event->name,
			     .kind = (uint8_t)kind,
			     .scratch = depth_of(kind) };
	int lane = lane_of(reader, event), ret;
	struct link link = { CODE_NONE, CODE_NONE };

	if (lane < 0)
		return count_full(reader, lane);
	trace->drops.unknown_category += event->is.category == NULL && !reader->maker.jax_host;
	trace->drops.missing_dur += !(event->has & HAS_DUR);
	trace->drops.negative_dur += event->has & HAS_DUR && event->dur_ns < 0;
	out.dur_ns = event->has & HAS_DUR ? MAX(event->dur_ns, (int64_t)0) : 0;
	out.lane = (uint16_t)lane;
	ret = wants_args(event, kind) ? add_args(reader, event, kind, &out.args) : 0;
	if (ret == 0 && event->has & HAS_ARGS)
		ret = make_link(reader, event, kind, &link);
	if (ret < 0)
		return ret;
	trace->meta.has_device |= kind == KIND_KERNEL || kind == KIND_GPU_MEMOP;
	trace->meta.has_stacks |= kind == KIND_PYTHON;
	if (link.id == CODE_NONE && link.parent == CODE_NONE)
		return build_event(reader->build, out, NULL);
	return build_event(reader->build, out, &link);
}

static int add_half(struct kevent_reader *reader, struct kevent *event)
{
	enum event_kind kind = kind_of(reader, event);
	struct half half = { .time_ns = event->ts_ns, .name = event->name, .kind = (uint8_t)kind };
	bool texts = event->is.pid.text != 0 || event->is.tid.text != 0;
	/* An end has no category of its own, so that a pair's lane cannot depend on it. */
	int lane = build_lane(reader->build, event->is.pid, event->is.tid,
			      texts ? LANE_OTHER : LANE_THREAD);
	int ret = 0;

	if (lane < 0)
		return count_full(reader, lane);
	half.lane = (uint16_t)lane;
	half.is_end = event->is.phase == 'E';
	if (!half.is_end) {
		reader->trace->drops.unknown_category += event->is.category == NULL;
		ret = wants_args(event, kind) ? add_args(reader, event, kind, &half.args) : 0;
	}
	return ret < 0 ? ret : build_half(reader->build, half);
}

/* Kineto's PM sampling puts the device into the pid: "GPU 3 Counters". */
static int64_t counter_device(const char *pid)
{
	int device;

	return sscanf(pid, "GPU %5d", &device) == 1 && device >= 0 ? device : -1;
}

static int add_samples(struct kevent_reader *reader, struct kevent *event)
{
	bool thread = event->name == reader->cpu_thread || event->name == reader->run_delay;
	struct series series = {
		.name = event->name,
		.device = counter_device(strtab_text(&reader->trace->strings, event->is.pid.text)),
		.tid = thread ? event->is.tid.num : -1,
	};

	if (!(event->has & HAS_ARGS) || reader->args.values.cnt == 0)
		reader->trace->drops.bad_event++;
	for (size_t i = 0; event->has & HAS_ARGS && i < reader->args.values.cnt; i++) {
		int ret;

		series.key = reader->args.values.data[i].key;
		ret = build_sample(reader->build, &series, event->ts_ns,
				   reader->args.values.data[i].value);
		ret = count_full(reader, ret);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int add_metadata(struct kevent_reader *reader, const struct kevent *event)
{
	const struct lane_label label = { event->is.pid, event->is.tid, event->args->label };

	if (!(event->has & HAS_ARGS) || label.name == 0)
		return 0;
	if (event->name == reader->process_name)
		tracemaker_add_process(&reader->maker,
				       strtab_text(&reader->trace->strings, label.name));
	if (event->name != reader->thread_name)
		return 0;
	return vec_push(&reader->build->labels, label);
}

/* Counts an event that has no interval. */
static void count_other(struct kevent_reader *reader, char phase)
{
	if (phase != 0 && strchr("iIRsftbenpPNODcvV()ST", phase) != NULL)
		reader->trace->drops.no_interval++;
	else
		reader->trace->drops.unknown_phase++;
}

int kevent_add(struct kevent_reader *reader, struct kevent *event)
{
	const unsigned int needed = event->is.phase == 'E' ? HAS_TS : HAS_TS | HAS_NAME;
	const bool complete = (event->has & needed) == needed;
	int ret = 0;

	switch (event->is.phase) {
	case 'M':
		return add_metadata(reader, event);
	case 'X':
		if (complete && reader->maker.jax_host)
			ret = name_step(reader, event);
		if (complete && reader->maker.jax_host && ret == 0)
			ret = name_frame(reader, event);
		if (complete)
			return ret < 0 ? ret : add_complete(reader, event);
		break;
	case 'B':
	case 'E':
		if (complete)
			return add_half(reader, event);
		break;
	case 'C':
		if (complete)
			return add_samples(reader, event);
		break;
	default:
		count_other(reader, event->is.phase);
		return 0;
	}
	reader->trace->drops.bad_event++;
	return 0;
}
