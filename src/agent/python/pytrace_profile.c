/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing by PyEval_SetProfile, CPython 3.8 to 3.11. */
#include "agent/python/pytrace_parts.h"

#include <errno.h>
#include <string.h>

enum {
	PROFILE_CALL = 0,
	PROFILE_RETURN = 3,
	PROFILE_C_CALL,
	PROFILE_C_EXCEPTION,
	PROFILE_C_RETURN
};

static pyfast on_new_thread;
static struct pymethod new_thread_def = { .name = "perftracker_thread", .call = on_new_thread };

static struct {
	const struct pyapi *api;
	bool calls;
	/* Identifies the agent's profile function; also the hook of new threads. */
	struct pyobject *mark;
	struct pyobject *getprofile;
} state;

/* The beginning of PyFrameObject before 3.11; PyFrame_GetCode came with 3.9. */
struct pyframe {
	intptr_t refs;
	const void *type;
	ptrdiff_t size;
	struct pyframe *back;
	struct pyobject *code;
};

/* Borrowed: the frame keeps it. */
static struct pyobject *code_of(struct pyobject *frame)
{
	struct pyobject *code;

	if (state.api->PyFrame_GetCode == NULL)
		return ((struct pyframe *)frame)->code;
	code = state.api->PyFrame_GetCode(frame);
	state.api->Py_DecRef(code);
	return code;
}

static int on_event(struct pyobject *arg, struct pyobject *frame, int what,
		    struct pyobject *what_arg)
{
	(void)arg;
	if (!pytrace_is_on()) { /* forked, or a thread that started while tracing stopped */
		state.api->PyEval_SetProfile(NULL, NULL);
		return 0;
	}
	switch (what) {
	case PROFILE_CALL:
		if (state.calls)
			pytrace_begins(code_of(frame));
		break;
	case PROFILE_RETURN:
		if (state.calls)
			pytrace_ends(code_of(frame));
		break;
	case PROFILE_C_CALL:
		(void)pytrace_c_begins(what_arg, NULL);
		break;
	case PROFILE_C_RETURN:
	case PROFILE_C_EXCEPTION:
		pytrace_c_ends(what_arg);
		break;
	default:
		break;
	}
	return 0;
}

/*
 * threading has set this Python-level profile function for the thread, which is slow; at the first
 * event (frame, name of the event, argument) the C function replaces it.
 */
static struct pyobject *on_new_thread(struct pyobject *self, struct pyobject *const *args,
				      ptrdiff_t cnt)
{
	const char *event = cnt == 3 ? state.api->PyUnicode_AsUTF8(args[1]) : NULL;

	(void)self;
	if (event == NULL)
		state.api->PyErr_Clear();
	if (pytrace_is_on())
		state.api->PyEval_SetProfile(on_event, state.mark);
	else
		state.api->PyEval_SetProfile(NULL, NULL);
	if (pytrace_is_on() && event != NULL && strcmp(event, "call") == 0)
		(void)on_event(state.mark, args[0], PROFILE_CALL, NULL);
	state.api->Py_IncRef(state.api->_Py_NoneStruct);
	return state.api->_Py_NoneStruct;
}

/*
 * The argument of a thread's profile function, borrowed. Another thread's is read with that thread
 * set as current: the lock is held, so it does not run meanwhile.
 */
static const struct pyobject *profiler_of(struct pythread *thread)
{
	struct pythread *own = state.api->PyThreadState_Swap(thread);
	struct pyobject *object = state.api->PyObject_CallFunctionObjArgs(state.getprofile, NULL);

	if (object == NULL)
		state.api->PyErr_Clear();
	(void)state.api->PyThreadState_Swap(own);
	pyapi_release(state.api, object);
	return object;
}

/* The function that takes the thread as an argument runs audit hooks on the calling thread. */
static void set_profiler(struct pythread *thread, pyprofile *callback, struct pyobject *arg)
{
	struct pythread *own;

	if (state.api->_PyEval_SetProfile != NULL) {
		if (state.api->_PyEval_SetProfile(thread, callback, arg) < 0)
			state.api->PyErr_Clear();
		return;
	}
	own = state.api->PyThreadState_Swap(thread);
	state.api->PyEval_SetProfile(callback, arg);
	(void)state.api->PyThreadState_Swap(own);
}

/*
 * The list of threads changes under the interpreter lock, except for foreign threads that enter
 * Python for the first time: they are inserted in front, under a lock of the list, and not yet
 * complete. A search for a thread that does not exist waits for that lock, and so for the first
 * thread to be complete.
 */
static struct pythread *first_thread(void)
{
	void *interpreter = state.api->PyInterpreterState_Main();
	struct pythread *first = state.api->PyInterpreterState_ThreadHead(interpreter);

	(void)state.api->PyThreadState_SetAsyncExc(~0ul, NULL);
	return first;
}

static int check(const struct pyapi *api, char *why, size_t size)
{
	struct pyobject *sys = pyapi_module(api, "sys");

	state.api = api;
	if (state.mark == NULL)
		state.mark = pyapi_builtin(api, &new_thread_def);
	if (state.getprofile == NULL && sys != NULL)
		state.getprofile = pyapi_attr(api, sys, "getprofile");
	if (state.mark == NULL || state.getprofile == NULL) {
		pytrace_say(why, size, "there is no sys.getprofile", "");
		return -ENOTSUP;
	}
	for (struct pythread *t = first_thread(); t != NULL; t = api->PyThreadState_Next(t)) {
		if (profiler_of(t) == api->_Py_NoneStruct)
			continue;
		pytrace_say(why, size, "another thread has a profile function", "");
		return -EBUSY;
	}
	return 0;
}

/* The threads that threading will start. hook: what they profile with, or None. */
static void set_hook(struct pyobject *hook)
{
	struct pyobject *threading = pyapi_module(state.api, "threading");
	struct pyobject *const args[3] = { hook };

	if (threading != NULL)
		pyapi_release(state.api, pyapi_call(state.api, threading, "setprofile", args));
}

static bool hook_is_agents(void)
{
	struct pyobject *threading = pyapi_module(state.api, "threading"), *hook;

	if (threading == NULL)
		return false;
	hook = pyapi_attr(state.api, threading, "_profile_hook");
	pyapi_release(state.api, hook);
	return hook == state.mark;
}

static int start(const struct pyapi *api, bool calls, char *why, size_t size)
{
	struct pythread *own = api->PyThreadState_Get();

	state.calls = calls;
	set_hook(state.mark);
	for (struct pythread *t = first_thread(); t != NULL; t = api->PyThreadState_Next(t))
		set_profiler(t, on_event, state.mark);
	if (profiler_of(own) == state.mark)
		return 0;
	pytrace_profile.stop(api);
	pytrace_say(why, size, "PyEval_SetProfile is refused", "");
	return -EIO;
}

static void stop(const struct pyapi *api)
{
	for (struct pythread *t = first_thread(); t != NULL; t = api->PyThreadState_Next(t)) {
		if (profiler_of(t) == state.mark)
			set_profiler(t, NULL, NULL);
	}
	if (hook_is_agents())
		set_hook(api->_Py_NoneStruct);
}

const struct pytrace_way pytrace_profile = { check, start, stop };
