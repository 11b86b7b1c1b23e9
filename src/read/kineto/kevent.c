/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kevent.h"

#include "read/kineto/kident.h"
#include "read/kineto/scan_plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Microseconds to nanoseconds. */
#define US_TO_NS 3

/* Which keys of an event were seen with a usable value. */
enum kevent_has {
	HAS_TS = 1u << 0,
	HAS_DUR = 1u << 1,
	HAS_NAME = 1u << 2,
	HAS_ARGS = 1u << 3,
};

struct kevent {
	struct shape_facts is;
	unsigned int has;
	int64_t ts_ns, dur_ns;
	uint32_t name;
	struct kargs *args; /* of the reader */
};

static int intern(struct trace *trace, const char *text, uint32_t *ret)
{
	*ret = strtab_intern(&trace->strings, text, strlen(text));
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

int kevent_init(struct kevent_reader *reader, struct scan *scan, struct build *build)
{
	struct trace *trace = build->trace;
	int ret;

	reader->scan = scan;
	reader->build = build;
	reader->trace = trace;
	reader->args.scan = scan;
	reader->args.trace = trace;
	reader->args.now.touched = true;
	ret = shapes_init(&reader->args.shapes, scan);
	if (ret == 0)
		ret = knames_init(&reader->names, scan, &trace->strings);
	if (ret == 0)
		ret = intern(trace, "record_param_comms", &reader->comms_name);
	if (ret == 0)
		ret = intern(trace, "thread_name", &reader->thread_name);
	if (ret == 0)
		ret = intern(trace, resource_name(RESOURCE_CPU_THREAD), &reader->cpu_thread);
	if (ret == 0)
		ret = intern(trace, resource_name(RESOURCE_RUN_DELAY), &reader->run_delay);
	return ret;
}

void kevent_done(struct kevent_reader *reader)
{
	knames_done(&reader->names);
	vec_done(&reader->args.values);
	shapes_done(&reader->args.shapes);
}

static int bad_value(struct kevent_reader *reader)
{
	reader->trace->drops.bad_value++;
	return scan_skip(reader->scan);
}

static int read_time(struct kevent_reader *reader, int64_t *ret, unsigned int *has,
		     unsigned int bit)
{
	struct number number;
	int c = scan_peek(reader->scan), r;

	*has &= ~bit;
	if (scan_plain_us(reader->scan, ret)) {
		*has |= bit;
		return 0;
	}
	if (c != '-' && (c < '0' || c > '9'))
		return bad_value(reader);
	r = scan_number(reader->scan, &number);
	if (r < 0)
		return r;
	if (number_scaled(&number, US_TO_NS, ret) < 0)
		reader->trace->drops.bad_value++;
	else
		*has |= bit;
	return 0;
}

static int read_ident(struct kevent_reader *reader, struct ident *ret)
{
	int found = kident_read(reader->scan, &reader->trace->strings, ret);

	reader->trace->drops.bad_value += found == 0;
	return MIN(found, 0);
}

static int read_phase(struct kevent_reader *reader, struct kevent *event)
{
	struct scan_text text;
	int r;

	event->is.phase = 0;
	if (scan_peek(reader->scan) != '"')
		return bad_value(reader);
	r = scan_string(reader->scan, &text);
	if (r == 0 && text.len == 1)
		event->is.phase = text.text[0];
	return r;
}

static int read_category(struct kevent_reader *reader, struct kevent *event)
{
	const struct category *last = reader->category;
	struct scan_text text;
	int r;

	event->is.category = NULL;
	if (scan_peek(reader->scan) != '"')
		return bad_value(reader);
	r = scan_string(reader->scan, &text);
	if (r < 0)
		return r;
	if (last != NULL && text.len == last->len && memcmp(text.text, last->name, last->len) == 0)
		event->is.category = last;
	else
		event->is.category = category_find(text.text, text.len);
	if (event->is.category != NULL)
		reader->category = event->is.category;
	return 0;
}

static int read_name(struct kevent_reader *reader, struct kevent *event)
{
	event->has &= ~(unsigned int)HAS_NAME;
	if (scan_peek(reader->scan) != '"')
		return bad_value(reader);
	event->has |= HAS_NAME;
	return knames_read(&reader->names, &event->name);
}

static void want_args(struct kevent_reader *reader, const struct kevent *event)
{
	/* Keys may be sorted by a tool: then "args" comes before "name" and "ph". */
	reader->args.want_values = event->is.phase == 'C' || event->is.phase == 0;
	reader->args.want_concrete = !(event->has & HAS_NAME) || event->name == reader->comms_name;
	reader->args.want_types =
		event->is.category == NULL || event->is.category->kind == KIND_ANNOTATION;
}

static int read_args(struct kevent_reader *reader, struct kevent *event)
{
	want_args(reader, event);
	event->has |= HAS_ARGS;
	return kargs_read(&reader->args, &event->is, event->args);
}

/* A value that differs from event to event. arg: of SHAPE_ARG. */
static int read_value(struct kevent_reader *reader, enum shape_value value, const struct karg *arg,
		      struct kevent *event)
{
	uint64_t number;

	switch (value) {
	case SHAPE_NAME:
		return read_name(reader, event);
	case SHAPE_TS:
		return read_time(reader, &event->ts_ns, &event->has, HAS_TS);
	case SHAPE_DUR:
		return read_time(reader, &event->dur_ns, &event->has, HAS_DUR);
	case SHAPE_ARG:
		return kargs_value(&reader->args, arg, event->args);
	case SHAPE_OTHER:
		return scan_plain_int(reader->scan, &number) ? 0 : scan_skip(reader->scan);
	case SHAPE_END:
		break;
	}
	return 0;
}

/* The same, to be learned from. */
static int log_value(struct kevent_reader *reader, enum shape_value value, struct kevent *event)
{
	int ret = scan_peek(reader->scan);

	if (ret < 0)
		return ret;
	shapes_log_value(&reader->args.shapes, value, NULL, &event->is);
	ret = read_value(reader, value, NULL, event);
	shapes_log_next(&reader->args.shapes);
	return ret;
}

static int read_field(struct kevent_reader *reader, const struct scan_text *key,
		      struct kevent *event)
{
	const char *k = key->text;

	switch (key->len) {
	case 2:
		if (memcmp(k, "ph", 2) == 0)
			return read_phase(reader, event);
		if (memcmp(k, "ts", 2) == 0)
			return log_value(reader, SHAPE_TS, event);
		break;
	case 3:
		if (memcmp(k, "cat", 3) == 0)
			return read_category(reader, event);
		if (memcmp(k, "pid", 3) == 0)
			return read_ident(reader, &event->is.pid);
		if (memcmp(k, "tid", 3) == 0)
			return read_ident(reader, &event->is.tid);
		if (memcmp(k, "dur", 3) == 0)
			return log_value(reader, SHAPE_DUR, event);
		break;
	case 4:
		if (memcmp(k, "name", 4) == 0)
			return log_value(reader, SHAPE_NAME, event);
		if (memcmp(k, "args", 4) == 0)
			return read_args(reader, event);
		break;
	default:
		break;
	}
	return log_value(reader, SHAPE_OTHER, event);
}

/* Counts what did not fit a limit; other errors stop the reading. */
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

	if (event->is.category == NULL)
		return KIND_OTHER;
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
	return intern(reader->trace, name + 5, ret);
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
	return found != NULL ? intern(reader->trace, found, &args->collective) : 0;
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

/* Adds the args of an event that wants some when they say anything: most annotations' do not. */
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

static int add_complete(struct kevent_reader *reader, struct kevent *event)
{
	struct trace *trace = reader->trace;
	enum event_kind kind = kind_of(reader, event);
	struct event out = { .start_ns = event->ts_ns, .name = event->name, .kind = (uint8_t)kind };
	int lane = lane_of(reader, event), ret;
	struct link link = { CODE_NONE, CODE_NONE };

	if (lane < 0)
		return count_full(reader, lane);
	trace->drops.unknown_category += event->is.category == NULL;
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

	if (!(event->has & HAS_ARGS) || event->name != reader->thread_name || label.name == 0)
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

static int add_event(struct kevent_reader *reader, struct kevent *event)
{
	const unsigned int needed = event->is.phase == 'E' ? HAS_TS : HAS_TS | HAS_NAME;
	const bool complete = (event->has & needed) == needed;

	switch (event->is.phase) {
	case 'M':
		return add_metadata(reader, event);
	case 'X':
		if (complete)
			return add_complete(reader, event);
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

/* As read_value() for what values usually are; else false, with nothing consumed. */
static inline bool read_usual(struct kevent_reader *reader, const struct shape *shape,
			      struct kevent *event)
{
	uint64_t number;

	switch ((enum shape_value)shape->value) {
	case SHAPE_NAME:
		event->has |= HAS_NAME;
		return *reader->scan->p == '"' && knames_read_guessed(&reader->names, &event->name);
	case SHAPE_TS:
		event->has |= HAS_TS;
		return scan_plain_us(reader->scan, &event->ts_ns);
	case SHAPE_DUR:
		event->has |= HAS_DUR;
		return scan_plain_us(reader->scan, &event->dur_ns);
	case SHAPE_ARG:
		return kargs_plain(&reader->args, shape->arg, event->args);
	case SHAPE_OTHER:
		return scan_plain_int(reader->scan, &number);
	case SHAPE_END:
		break;
	}
	return false;
}

/* "args" begins with this shape: whether its values can be read without their keys. */
static bool begin_args(struct kevent_reader *reader, const struct shape *shape,
		       struct kevent *event)
{
	event->is = shape->facts;
	want_args(reader, event);
	if (reader->args.want_values)
		return false;
	event->has |= HAS_ARGS;
	kargs_begin(&reader->args, event->args);
	return true;
}

/* Reads on while the texts between the values are known. *ret_at: the last one's shape. */
static int read_alike(struct kevent_reader *reader, struct kevent *event, uint16_t *ret_at)
{
	struct shapes *shapes = &reader->args.shapes;
	uint16_t at = SHAPE_ROOT, next;
	int ret = 0;

	while (ret == 0 && (next = shapes_next(shapes, at)) != SHAPE_ROOT) {
		const struct shape *shape = &shapes->list[next];

		if (shape->opens_args && !begin_args(reader, shape, event))
			break;
		reader->scan->p += shape->len;
		at = next;
		if (shape->value == SHAPE_END) {
			shapes->last_end = at;
			break;
		}
		if (!read_usual(reader, shape, event))
			ret = read_value(reader, (enum shape_value)shape->value, shape->arg, event);
	}
	event->is = shapes->list[at].facts;
	*ret_at = at;
	return ret;
}

/* Reads on to behind the event's brace; first: no member was read. */
static int read_rest(struct kevent_reader *reader, bool first, struct kevent *event)
{
	int ret;

	while ((ret = scan_member(reader->scan, '}', &first)) > 0) {
		struct scan_text key;

		ret = scan_key(reader->scan, &key);
		if (ret == 0)
			ret = read_field(reader, &key, event);
		if (ret < 0)
			return ret;
	}
	return ret;
}

/* To the next event's brace. Returns 1, 0 when the list ended, -errno. */
static int begin_event(struct kevent_reader *reader, bool *first)
{
	struct scan *scan = reader->scan;
	int ret = scan_member(scan, ']', first);

	if (ret <= 0)
		return ret;
	if (scan_peek(scan) != '{')
		return scan->failed < 0 ? scan->failed : scan_fail(scan, "an event (an object)");
	scan_next(scan);
	return 1;
}

/* Parses what follows the text of shape at. As kevent_next(). */
static int parse_event(struct kevent_reader *reader, uint16_t at, bool *first, struct kevent *event)
{
	struct shapes *shapes = &reader->args.shapes;
	uint64_t bad_cnt = reader->trace->drops.bad_value;
	bool any_before = !*first;
	int ret = 1;

	shapes_log(shapes, at);
	if (at == SHAPE_ROOT)
		ret = begin_event(reader, first);
	if (ret <= 0)
		return ret;
	if (shapes->list[at].in_args)
		ret = kargs_rest(&reader->args, false, &event->is, event->args);
	if (ret >= 0)
		ret = read_rest(reader, at == SHAPE_ROOT, event);
	if (ret < 0)
		return ret;
	/* A text that says less than its writer meant is counted each time it is met. The one
	 * before the first event lacks a comma. */
	if (any_before && reader->trace->drops.bad_value == bad_cnt)
		shapes_learn(shapes, &event->is);
	return 1;
}

int kevent_next(struct kevent_reader *reader, bool *first)
{
	struct kevent event;
	uint16_t at = SHAPE_ROOT;
	int ret = 0;

	event.args = &reader->args.now;
	event.has = 0;
	event.name = 0;
	if (*first)
		event.is = (struct shape_facts){ 0 };
	else
		ret = read_alike(reader, &event, &at);
	if (ret == 0 && (at == SHAPE_ROOT || reader->args.shapes.list[at].value != SHAPE_END))
		ret = parse_event(reader, at, first, &event);
	else if (ret == 0)
		ret = 1;
	if (ret <= 0)
		return ret;
	ret = add_event(reader, &event);
	return ret < 0 ? ret : 1;
}
