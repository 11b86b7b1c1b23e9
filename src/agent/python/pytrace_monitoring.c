/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing by sys.monitoring (PEP 669), CPython 3.12 and later. */
#include "agent/python/pytrace_parts.h"

#include <errno.h>

static pyfast on_begin, on_begin_thrown, on_end, on_end_unwound, on_c_begin, on_c_end;

static struct event {
	const char *name; /* in sys.monitoring.events */
	bool python;	  /* only if Python functions are traced */
	struct pymethod def;
} events[] = {
	{ "PY_START", true, { "perftracker_start", on_begin } },
	{ "PY_RESUME", true, { "perftracker_resume", on_begin } },
	{ "PY_THROW", true, { "perftracker_throw", on_begin_thrown } },
	{ "PY_RETURN", true, { "perftracker_return", on_end } },
	{ "PY_YIELD", true, { "perftracker_yield", on_end } },
	{ "PY_UNWIND", true, { "perftracker_unwind", on_end_unwound } },
	{ "CALL", false, { "perftracker_call", on_c_begin } },
	{ "C_RETURN", false, { "perftracker_c_return", on_c_end } },
	{ "C_RAISE", false, { "perftracker_c_raise", on_c_end } },
};

/* Ids without an owner by convention: 0, 1, 2 and 5 are a debugger's, a coverage tool's, ... */
static const int tools[] = { 3, 4 };
static const int rivals[] = { 0, 1, 2 };

static struct {
	const struct pyapi *api;
	struct pyobject *monitoring; /* the module-like sys.monitoring */
	struct pyobject *disable;    /* returned by a callback to disable events at this place */
	struct pyobject *tool;	     /* its id; NULL: none */
} state;

static struct pyobject *new_reference(struct pyobject *object)
{
	state.api->Py_IncRef(object);
	return object;
}

static struct pyobject *go_on(void)
{
	return new_reference(state.api->_Py_NoneStruct);
}

/* A forked child comes here, too: it gets rid of the hook place by place. */
static struct pyobject *go_on_if(bool wanted)
{
	return wanted ? go_on() : new_reference(state.disable);
}

/* All callbacks get the code object and a position; self is NULL. */

static struct pyobject *on_begin(struct pyobject *self, struct pyobject *const *args, ptrdiff_t cnt)
{
	bool on = pytrace_is_on();

	(void)self;
	if (on && cnt > 0)
		pytrace_begins(args[0]);
	return go_on_if(on);
}

static struct pyobject *on_end(struct pyobject *self, struct pyobject *const *args, ptrdiff_t cnt)
{
	bool on = pytrace_is_on();

	(void)self;
	if (on && cnt > 0)
		pytrace_ends(args[0]);
	return go_on_if(on);
}

/* These two events belong to no place: Python does not let them be disabled. */

static struct pyobject *on_begin_thrown(struct pyobject *self, struct pyobject *const *args,
					ptrdiff_t cnt)
{
	(void)self;
	if (pytrace_is_on() && cnt > 0)
		pytrace_begins(args[0]);
	return go_on();
}

static struct pyobject *on_end_unwound(struct pyobject *self, struct pyobject *const *args,
				       ptrdiff_t cnt)
{
	(void)self;
	if (pytrace_is_on() && cnt > 0)
		pytrace_ends(args[0]);
	return go_on();
}

/* Code, position, callable, first argument. */
static struct pyobject *on_c_begin(struct pyobject *self, struct pyobject *const *args,
				   ptrdiff_t cnt)
{
	(void)self;
	return go_on_if(pytrace_is_on() && cnt >= 4 && pytrace_c_begins(args[2], args[3]));
}

static struct pyobject *on_c_end(struct pyobject *self, struct pyobject *const *args, ptrdiff_t cnt)
{
	(void)self;
	if (pytrace_is_on() && cnt >= 3)
		pytrace_c_ends(args[2]);
	return go_on();
}

/* Calls sys.monitoring.function. False: Python refused. */
static bool call(const char *function, struct pyobject *a, struct pyobject *b, struct pyobject *c)
{
	struct pyobject *const args[3] = { a, b, c };
	struct pyobject *result = pyapi_call(state.api, state.monitoring, function, args);

	pyapi_release(state.api, result);
	return result != NULL;
}

static struct pyobject *number(long long value)
{
	struct pyobject *object = state.api->PyLong_FromLongLong(value);

	if (object == NULL)
		state.api->PyErr_Clear();
	return object;
}

/* The name of a tool that is in use, a new reference; NULL: the id is free. */
static struct pyobject *tool_name(int id)
{
	struct pyobject *args[3] = { number(id) }, *name;

	name = pyapi_call(state.api, state.monitoring, "get_tool", args);
	pyapi_release(state.api, args[0]);
	if (name != state.api->_Py_NoneStruct)
		return name;
	pyapi_release(state.api, name);
	return NULL;
}

static bool find_monitoring(const struct pyapi *api)
{
	struct pyobject *sys = pyapi_module(api, "sys");

	state.api = api;
	if (state.monitoring == NULL && sys != NULL)
		state.monitoring = pyapi_attr(api, sys, "monitoring");
	if (state.disable == NULL && state.monitoring != NULL)
		state.disable = pyapi_attr(api, state.monitoring, "DISABLE");
	return state.disable != NULL;
}

static int check(const struct pyapi *api, char *why, size_t size)
{
	if (!find_monitoring(api)) {
		pytrace_say(why, size, "there is no sys.monitoring", "");
		return -ENOTSUP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rivals); i++) {
		struct pyobject *name = tool_name(rivals[i]);
		const char *text = name != NULL ? api->PyUnicode_AsUTF8(name) : NULL;

		if (name == NULL)
			continue;
		if (text == NULL)
			api->PyErr_Clear();
		pytrace_say(why, size, "sys.monitoring is used by ", text != NULL ? text : "?");
		pyapi_release(api, name);
		return -EBUSY;
	}
	return 0;
}

static struct pyobject *take_tool(void)
{
	struct pyobject *name = state.api->PyUnicode_FromString("perftracker"), *id = NULL;
	bool taken = false;

	for (size_t i = 0; i < ARRAY_SIZE(tools) && !taken; i++) {
		struct pyobject *rival = tool_name(tools[i]);

		pyapi_release(state.api, id);
		id = number(tools[i]);
		taken = rival == NULL && id != NULL && name != NULL &&
			call("use_tool_id", id, name, NULL);
		pyapi_release(state.api, rival);
	}
	pyapi_release(state.api, name);
	if (taken)
		return id;
	state.api->PyErr_Clear();
	pyapi_release(state.api, id);
	return NULL;
}

static long long event_bit(const char *name)
{
	struct pyobject *names = pyapi_attr(state.api, state.monitoring, "events");
	long long bit = names != NULL ? pyapi_attr_number(state.api, names, name, 0) : 0;

	pyapi_release(state.api, names);
	return bit;
}

static bool set_events(long long bits)
{
	struct pyobject *set = number(bits);
	bool done = set != NULL && call("set_events", state.tool, set, NULL);

	pyapi_release(state.api, set);
	return done;
}

/* callback: None takes the old one away. */
static bool register_callback(long long bit, struct pyobject *callback)
{
	struct pyobject *event = number(bit);
	bool done = event != NULL && callback != NULL &&
		    call("register_callback", state.tool, event, callback);

	pyapi_release(state.api, event);
	return done;
}

static bool register_all(bool calls, long long *bits)
{
	bool done = true;

	for (size_t i = 0; i < ARRAY_SIZE(events) && done; i++) {
		long long bit = event_bit(events[i].name);
		struct pyobject *callback;

		if (events[i].python && !calls)
			continue;
		callback = pyapi_builtin(state.api, &events[i].def);
		done = bit != 0 && register_callback(bit, callback);
		pyapi_release(state.api, callback);
		*bits |= bit;
	}
	return done;
}

static void stop(const struct pyapi *api)
{
	(void)set_events(0);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		(void)register_callback(event_bit(events[i].name), api->_Py_NoneStruct);
	(void)call("free_tool_id", state.tool, NULL, NULL);
	pyapi_release(api, take_ptr(state.tool));
}

/*
 * Places disabled in an older window stay so until the restart, as its events are the
 * same for Python if no code ran in between.
 */
static int start(const struct pyapi *api, bool calls, char *why, size_t size)
{
	long long bits = 0;

	state.tool = take_tool();
	if (state.tool == NULL) {
		pytrace_say(why, size, "no tool id of sys.monitoring is free", "");
		return -EBUSY;
	}
	if (register_all(calls, &bits) && set_events(bits) &&
	    call("restart_events", NULL, NULL, NULL))
		return 0;
	stop(api);
	pytrace_say(why, size, "sys.monitoring refuses", "");
	return -EIO;
}

const struct pytrace_way pytrace_monitoring = { check, start, stop };
