/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/kineto.h"

#include "read/kineto/kevent.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_TEXT_BYTES (256ULL << 30)
#define MAX_MEMORY_BYTES (8ULL << 30)
#define HEAD_ENDS 1 /* the list of events begins */

struct kineto {
	struct scan scan;
	struct build build;
	struct kevent_reader events;
	struct trace trace;
	struct err *err;
	uint64_t max_memory_bytes;
	bool have_events, head_only;
};

static int read_events(struct kineto *kineto)
{
	struct scan *scan = &kineto->scan;
	bool first = true;
	int ret;

	ret = scan_peek(scan);
	if (ret < 0)
		return ret;
	if (kineto->have_events)
		return scan_fail(scan, "one list of events");
	kineto->have_events = true;
	if (kineto->head_only)
		return HEAD_ENDS;
	ret = scan_expect(scan, '[', "an array of events");
	if (ret < 0)
		return ret;
	while ((ret = kevent_next(&kineto->events, &first)) > 0) {
		if (build_bytes(&kineto->build) > kineto->max_memory_bytes)
			return err_set(kineto->err, EFBIG,
				       "%s: byte %" PRIu64
				       ": expected events and names of at most %" PRIu64
				       " bytes, found more",
				       scan->name, scan_offset(scan), kineto->max_memory_bytes);
	}
	return ret;
}

static int bad_value(struct kineto *kineto)
{
	kineto->trace.drops.bad_value++;
	return scan_skip(&kineto->scan);
}

static int read_int(struct kineto *kineto, int64_t low, int64_t high, int64_t *ret)
{
	struct number number;
	int c = scan_peek(&kineto->scan), r;
	int64_t value;

	if (c != '-' && (c < '0' || c > '9'))
		return bad_value(kineto);
	r = scan_number(&kineto->scan, &number);
	if (r < 0)
		return r;
	if (number_int64(&number, &value) < 0 || value < low || value > high)
		kineto->trace.drops.bad_value++;
	else
		*ret = value;
	return 0;
}

/* An owned copy; the last one counts. */
static int read_text(struct kineto *kineto, char **ret)
{
	struct scan_text text;
	char *copy;
	int r;

	if (scan_peek(&kineto->scan) != '"')
		return bad_value(kineto);
	r = scan_string(&kineto->scan, &text);
	if (r < 0)
		return r;
	copy = strndup(text.text, text.len);
	if (copy == NULL)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static bool is(const struct scan_text *key, const char *word)
{
	return strlen(word) == key->len && memcmp(key->text, word, key->len) == 0;
}

/* Reads the value of one key of an object. Returns 0, HEAD_ENDS or -errno. */
typedef int member_fn(struct kineto *kineto, const struct scan_text *key);

static int read_object(struct kineto *kineto, member_fn *read_member)
{
	struct scan_text key;
	bool first = true;
	int ret;

	if (scan_peek(&kineto->scan) != '{')
		return bad_value(kineto);
	scan_next(&kineto->scan);
	while ((ret = scan_member(&kineto->scan, '}', &first)) > 0) {
		ret = scan_key(&kineto->scan, &key);
		if (ret == 0)
			ret = read_member(kineto, &key);
		if (ret != 0)
			return ret;
	}
	return ret;
}

static int read_distributed(struct kineto *kineto, const struct scan_text *key)
{
	struct trace_meta *meta = &kineto->trace.meta;
	int64_t value;
	int ret;

	if (is(key, "backend"))
		return read_text(kineto, &meta->backend);
	if (is(key, "rank")) {
		value = meta->rank;
		ret = read_int(kineto, 0, INT_MAX, &value);
		meta->rank = (int)value;
		return ret;
	}
	if (is(key, "world_size")) {
		value = meta->world_size;
		ret = read_int(kineto, 1, INT_MAX, &value);
		meta->world_size = (int)value;
		return ret;
	}
	return scan_skip(&kineto->scan);
}

static int read_device(struct kineto *kineto, const struct scan_text *key)
{
	char **name = &kineto->trace.meta.device_name;

	return *name == NULL && is(key, "name") ? read_text(kineto, name)
						: scan_skip(&kineto->scan);
}

static int read_devices(struct kineto *kineto)
{
	bool first = true;
	int ret;

	if (scan_peek(&kineto->scan) != '[')
		return bad_value(kineto);
	scan_next(&kineto->scan);
	while ((ret = scan_member(&kineto->scan, ']', &first)) > 0) {
		ret = read_object(kineto, read_device);
		if (ret < 0)
			return ret;
	}
	return ret;
}

static int read_top(struct kineto *kineto, const struct scan_text *key)
{
	struct trace_meta *meta = &kineto->trace.meta;

	if (is(key, "traceEvents"))
		return read_events(kineto);
	if (is(key, "baseTimeNanoseconds"))
		return read_int(kineto, INT64_MIN, INT64_MAX, &meta->base_ns);
	if (is(key, "distributedInfo"))
		return read_object(kineto, read_distributed);
	if (is(key, "deviceProperties"))
		return read_devices(kineto);
	if (is(key, "host_name") || is(key, "hostname"))
		return read_text(kineto, &meta->host);
	return scan_skip(&kineto->scan);
}

static int read_document(struct kineto *kineto)
{
	struct scan *scan = &kineto->scan;
	int ret = scan_skip_marks(scan), c = ret < 0 ? ret : scan_peek(scan);

	if (c < 0)
		return c;
	if (c == '[')
		ret = read_events(kineto);
	else if (c == '{')
		ret = read_object(kineto, read_top);
	else
		return scan_fail(scan, "a trace (a JSON object or array)");
	if (ret == 0)
		ret = scan_finish(scan);
	if (ret != 0 || kineto->have_events)
		return ret;
	return err_set(kineto->err, EINVAL,
		       "%s: byte %" PRIu64 ": expected a \"traceEvents\" array, found none",
		       scan->name, scan_offset(scan));
}

static int read_trace(struct kineto *kineto)
{
	struct trace_meta *meta = &kineto->trace.meta;
	int ret = kevent_init(&kineto->events, &kineto->scan, &kineto->build);

	if (ret == 0)
		ret = read_document(kineto);
	if (ret != 0)
		return MIN(ret, 0);
	meta->text_bytes = scan_offset(&kineto->scan);
	kineto->trace.drops.bad_utf8 = kineto->scan.bad_utf8_cnt;
	meta->source = strdup(kineto->scan.name);
	if (meta->source == NULL)
		return -ENOMEM;
	ret = tracemaker_check(&kineto->events.maker, kineto->scan.name, kineto->err);
	if (ret == 0)
		ret = build_finish(&kineto->build, meta->base_ns);
	if (ret == 0)
		tracemaker_link(&kineto->events.maker, &kineto->trace);
	return ret;
}

/* Reads from input, which it owns. */
static int read_input(struct input *input, const char *name, const struct kineto_options *opt,
		      struct trace *ret, struct err *err)
{
	static const struct kineto_options defaults = { 0 };
	struct kineto kineto = { .err = err };
	int r;

	opt = opt != NULL ? opt : &defaults;
	kineto.max_memory_bytes =
		opt->max_memory_bytes > 0 ? opt->max_memory_bytes : MAX_MEMORY_BYTES;
	kineto.head_only = opt->head_only;
	r = trace_init(&kineto.trace);
	build_init(&kineto.build, &kineto.trace);
	if (r == 0)
		r = scan_init(&kineto.scan, input, name, opt->window_bytes, err);
	if (r == 0) {
		kineto.scan.max_text_bytes =
			opt->max_text_bytes > 0 ? opt->max_text_bytes : MAX_TEXT_BYTES;
		r = read_trace(&kineto);
	}
	if (r == -ENOMEM)
		r = err_set(err, ENOMEM, "%s: out of memory", name);
	kevent_done(&kineto.events);
	build_done(&kineto.build);
	scan_done(&kineto.scan);
	input_free(input);
	if (r < 0)
		trace_done(&kineto.trace);
	else
		*ret = kineto.trace;
	return r;
}

int kineto_read(const char *path, const struct kineto_options *opt, struct trace *ret,
		struct err *err)
{
	struct input *input;
	int r = input_open(path, &input, err);

	return r < 0 ? r : read_input(input, path, opt, ret, err);
}

int kineto_read_memory(const void *data, size_t len, const char *source_name,
		       const struct kineto_options *opt, struct trace *ret, struct err *err)
{
	struct input *input;
	int r = input_open_memory(data, len, &input);

	if (r < 0)
		return err_set(err, -r, "%s: out of memory", source_name);
	return read_input(input, source_name, opt, ret, err);
}

int kineto_read_input(const struct reader_input *input, struct trace *ret, struct err *err)
{
	return kineto_read(input->file, NULL, ret, err);
}

int kineto_read_head(const char *file, struct trace *ret)
{
	const struct kineto_options head = { .head_only = true };

	return kineto_read(file, &head, ret, NULL);
}
