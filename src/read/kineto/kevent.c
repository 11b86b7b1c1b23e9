/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kevent.h"

#include "read/kineto/kevent_parts.h"
#include "read/kineto/kident.h"
#include "read/kineto/scan_plain.h"
#include "read/kineto/shape_match.h"

#include <errno.h>
#include <string.h>

/* Microseconds to nanoseconds. */
#define US_TO_NS 3

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
		ret = kevent_intern(trace, "record_param_comms", &reader->comms_name);
	if (ret == 0)
		ret = kevent_intern(trace, "thread_name", &reader->thread_name);
	if (ret == 0)
		ret = kevent_intern(trace, "process_name", &reader->process_name);
	if (ret == 0)
		ret = kevent_intern(trace, resource_name(RESOURCE_CPU_THREAD), &reader->cpu_thread);
	if (ret == 0)
		ret = kevent_intern(trace, resource_name(RESOURCE_RUN_DELAY), &reader->run_delay);
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

/* The same, and logs the text before it, for shapes_learn(). */
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

/* read_value() for common forms. Returns false with nothing consumed for others. */
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

/* "args" begins in this shape. Returns whether its values can be read without their keys. */
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

/* Reads values while the texts between them match shapes. *ret_at: the last shape. */
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

/* Reads members up to and with the event's closing brace; first: no member was read. */
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
	ret = scan_skip_marks(scan);
	if (ret < 0)
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
	/* An event with a bad value is parsed each time, to count it. The text before the first
	 * event lacks a comma. */
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
	ret = kevent_add(reader, &event);
	return ret < 0 ? ret : 1;
}
