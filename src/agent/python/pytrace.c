/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/pytrace.h"

#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/python/pylisted.h"
#include "agent/python/pytrace_parts.h"
#include "agent/python/thin.h"
#include "base/clock.h"
#include "base/pythonrange.h"

#include <errno.h>
#include <string.h>

enum {
	DEPTH_MAX = 256,
	CODE_SLOTS = 2 * FLIGHT_FRAME_CNT, /* at most half full */
	CODE_PROBES = 64,
};

/* A call under way. */
struct call {
	const void *key; /* code object, or pylisted_key() */
	int64_t start_ns;
	uint32_t name; /* frame or string */
	uint32_t kind; /* enum flight_kind */
};

/* Those of one thread. depth goes on counting beyond DEPTH_MAX. */
struct calls {
	struct thin thin;
	uint32_t depth;
	struct call open[DEPTH_MAX];
};

/*
 * Under the interpreter lock, but `on`. Static, so that nothing is allocated; its
 * pages exist from their first use on.
 */
static struct pytrace {
	_Atomic bool on;
	bool opened, started;
	const struct pyapi *api;
	const struct pytrace_way *way;
	uint32_t window; /* counts windows: what threads keep of an older one is void */
	uint32_t thread_cnt;
	struct calls threads[FLIGHT_LANE_CNT];
	/* Code objects of this window, each with an owned reference. */
	struct code_slot {
		struct pyobject *code;
		uint32_t frame;
	} codes[CODE_SLOTS];
	uint32_t code_cnt;
	uint32_t code_at[FLIGHT_FRAME_CNT]; /* their slots */
} trace;

static __thread struct {
	uint32_t window;
	uint32_t number; /* in trace.threads */
} mine __attribute__((tls_model("initial-exec")));

bool pytrace_is_on(void)
{
	return atomic_load_explicit(&trace.on, memory_order_relaxed);
}

void pytrace_say(char *why, size_t size, const char *first, const char *then)
{
	size_t first_len = strnlen(first, size - 1);
	size_t then_len = strnlen(then, size - 1 - first_len);

	memcpy(why, first, first_len);
	memcpy(why + first_len, then, then_len);
	why[first_len + then_len] = '\0';
}

/* Names of code objects */

static void count_drop(_Atomic uint64_t *drops)
{
	atomic_fetch_add_explicit(drops, 1, memory_order_relaxed);
}

/* attribute's text, valid while code lives, which holds it. */
static const char *text_of(struct pyobject *code, const char *attribute)
{
	struct pyobject *object = pyapi_attr(trace.api, code, attribute);
	const char *text = object != NULL ? trace.api->PyUnicode_AsUTF8(object) : NULL;

	if (text == NULL)
		trace.api->PyErr_Clear();
	pyapi_release(trace.api, object);
	return text != NULL ? text : "?";
}

static uint32_t name_code(struct pyobject *code)
{
	return nametable_frame(text_of(code, "co_filename"), text_of(code, "co_name"),
			       (uint32_t)pyapi_attr_number(trace.api, code, "co_firstlineno", 0));
}

/* An error of the program is under way in the callers of some callbacks: no attribute then. */
static uint32_t add_code(struct code_slot *slot, struct pyobject *code)
{
	struct flight *flight = lane_flight();
	uint32_t frame;

	if (flight == NULL || trace.api->PyErr_Occurred() != NULL)
		return 0;
	if (trace.code_cnt == FLIGHT_FRAME_CNT) {
		count_drop(&flight->drops.frames);
		return 0;
	}
	frame = name_code(code);
	if (frame == 0)
		return 0;
	trace.api->Py_IncRef(code);
	*slot = (struct code_slot){ code, frame };
	trace.code_at[trace.code_cnt++] = (uint32_t)(slot - trace.codes);
	return frame;
}

static uint32_t frame_of(struct pyobject *code)
{
	uint64_t at = ((uintptr_t)code >> 4) * 0x9e3779b97f4a7c15u >> 40;

	for (size_t i = 0; i < CODE_PROBES; i++, at++) {
		struct code_slot *slot = &trace.codes[at % CODE_SLOTS];

		if (slot->code == code)
			return slot->frame;
		if (slot->code == NULL)
			return add_code(slot, code);
	}
	return 0;
}

static void release_codes(void)
{
	while (trace.code_cnt > 0) {
		struct code_slot *slot = &trace.codes[trace.code_at[--trace.code_cnt]];
		struct pyobject *code = take_ptr(slot->code);

		trace.api->Py_DecRef(code); /* may run code of the program */
	}
}

/* Calls under way */

static struct calls *take_calls(void)
{
	mine.window = trace.window;
	mine.number = trace.thread_cnt;
	if (trace.thread_cnt == FLIGHT_LANE_CNT)
		return NULL;
	trace.threads[trace.thread_cnt].thin = (struct thin){ 0 };
	trace.threads[trace.thread_cnt].depth = 0;
	return &trace.threads[trace.thread_cnt++];
}

/* NULL: more threads than are followed. */
static struct calls *own_calls(void)
{
	if (mine.window != trace.window)
		return take_calls();
	return mine.number < FLIGHT_LANE_CNT ? &trace.threads[mine.number] : NULL;
}

static void open_call(const void *key, enum flight_kind kind, uint32_t name)
{
	struct calls *calls = own_calls();
	struct flight *flight = lane_flight();

	if (calls == NULL) {
		if (flight != NULL)
			count_drop(&flight->drops.lanes);
		return;
	}
	if (calls->depth < DEPTH_MAX)
		calls->open[calls->depth] = (struct call){
			.key = key, .start_ns = clock_mono_ns(), .name = name, .kind = kind
		};
	else if (flight != NULL)
		count_drop(&flight->drops.nested);
	calls->depth++;
}

/*
 * At the rate of calls a locked addition would be measurable; no other thread writes this counter.
 */
static void count_short(void)
{
	struct flight *flight = lane_flight();
	uint64_t cnt;

	if (flight == NULL)
		return;
	cnt = atomic_load_explicit(&flight->drops.calls, memory_order_relaxed);
	atomic_store_explicit(&flight->drops.calls, cnt + 1, memory_order_relaxed);
}

/* A call that is not under way any more. */
static void write_call(struct calls *calls, const struct call *call, int64_t end_ns)
{
	struct ring_record record = { .time_ns = call->start_ns,
				      .value = end_ns - call->start_ns,
				      .kind = (uint16_t)call->kind,
				      .extra = call->name };

	if (thin_keep(&calls->thin, end_ns, record.value))
		lane_record_window(&record);
	else
		count_short();
}

void pytrace_begins(struct pyobject *code)
{
	open_call(code, FLIGHT_PYTHON, frame_of(code));
}

/*
 * Calls above it have lost their ends, for instance in a debugger of the program. A call that began
 * before the window ends after all that is open.
 */
void pytrace_ends(const struct pyobject *code)
{
	int64_t now_ns = clock_mono_ns();
	struct calls *calls = own_calls();

	if (calls == NULL || calls->depth == 0)
		return;
	if (calls->depth > DEPTH_MAX) {
		calls->depth--;
		return;
	}
	while (calls->depth > 0) {
		const struct call *call = &calls->open[--calls->depth];

		if (call->key == code) {
			write_call(calls, call, now_ns);
			return;
		}
	}
}

/* A depth beyond DEPTH_MAX is lowered by ends of Python functions only. */
bool pytrace_c_begins(struct pyobject *callable, struct pyobject *first)
{
	struct flight *flight = lane_flight();
	uint32_t name = flight != NULL ? pylisted_name(callable, first) : 0;
	const struct calls *calls = own_calls();

	if (name == 0)
		return false;
	if (calls != NULL && calls->depth >= DEPTH_MAX)
		count_drop(&flight->drops.nested);
	else
		open_call(pylisted_key(callable), FLIGHT_C_CALL, name);
	return true;
}

/* Asked for each C function that ends: one that is not listed must change nothing. */
void pytrace_c_ends(const struct pyobject *callable)
{
	struct calls *calls = own_calls();
	const struct call *call;

	if (calls == NULL || calls->depth == 0 || calls->depth > DEPTH_MAX)
		return;
	call = &calls->open[calls->depth - 1];
	if (call->kind != FLIGHT_C_CALL || call->key != pylisted_key(callable))
		return;
	write_call(calls, call, clock_mono_ns());
	calls->depth--;
}

/* The calls of this thread that the end of the window cuts off. */
static void cut_calls(void)
{
	int64_t now_ns = clock_mono_ns();
	struct calls *calls = own_calls();

	for (; calls != NULL && calls->depth > 0; calls->depth--) {
		const struct call *call = &calls->open[MIN(calls->depth, DEPTH_MAX + 0u) - 1];

		if (calls->depth <= DEPTH_MAX && call->kind == FLIGHT_PYTHON)
			write_call(calls, call, now_ns);
	}
}

/* Windows */

int pytrace_open(char *why, size_t size)
{
	static const char unfit[] =
		"no exact calls of a Python before " PYTHON_TEXT(PYTHON_OLDEST) ", free-threaded ";
	const struct pyapi *api = pyapi_open();

	if (trace.opened)
		return 0;
	if (api == NULL) {
		pytrace_say(why, size, "functions of Python's C interface are missing", "");
		return -ENOSYS;
	}
	if (api->minor < PYTHON_OLDEST || api->free_threaded || !pylisted_open(api)) {
		pytrace_say(why, size, unfit, "or with layouts of its own");
		return -ENOTSUP;
	}
	trace.api = api;
	trace.way = api->minor >= 12 ? &pytrace_monitoring : &pytrace_profile;
	trace.opened = true;
	return 0;
}

/* object.getter() or object.getter, an attribute, is something else than None. */
static bool is_set(struct pyobject *value)
{
	bool set = value != NULL && value != trace.api->_Py_NoneStruct;

	pyapi_release(trace.api, value);
	return set;
}

/* Another tool that watches calls would be slowed down, or replaced. */
static int check_rivals(char *why, size_t size)
{
	static const char *const getters[] = { "getprofile", "gettrace" };
	static const char *const hooks[] = { "_profile_hook", "_trace_hook" };
	struct pyobject *sys = pyapi_module(trace.api, "sys");
	struct pyobject *threading = pyapi_module(trace.api, "threading");
	struct pyobject *const none[3] = { NULL };

	for (size_t i = 0; i < ARRAY_SIZE(getters); i++) {
		if (sys != NULL && is_set(pyapi_call(trace.api, sys, getters[i], none))) {
			pytrace_say(why, size, "another tool traces calls: sys.", getters[i]);
			return -EBUSY;
		}
		if (threading != NULL && is_set(pyapi_attr(trace.api, threading, hooks[i]))) {
			pytrace_say(why, size, "another tool traces calls: threading.", hooks[i]);
			return -EBUSY;
		}
	}
	return trace.way->check(trace.api, why, size);
}

int pytrace_start(bool calls, char *why, size_t size)
{
	int err;

	if (!trace.opened) {
		pytrace_say(why, size, "not open", "");
		return -ENOTSUP;
	}
	if (trace.started) {
		pytrace_say(why, size, "it has begun already", "");
		return -EALREADY;
	}
	err = check_rivals(why, size);
	if (err < 0)
		return err;
	trace.window++;
	trace.thread_cnt = 0;
	pylisted_reset();
	err = trace.way->start(trace.api, calls, why, size);
	if (err < 0)
		return err;
	trace.started = true;
	atomic_store_explicit(&trace.on, true, memory_order_relaxed);
	return 0;
}

void pytrace_stop(void)
{
	if (!trace.started)
		return;
	atomic_store_explicit(&trace.on, false, memory_order_relaxed);
	cut_calls();
	trace.way->stop(trace.api);
	release_codes();
	trace.started = false;
}

void pytrace_forked(void)
{
	atomic_store_explicit(&trace.on, false, memory_order_relaxed);
}
