/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that Python calls at each mark, as built-in C functions: a call takes a tenth of a
 * microsecond. They pass objects' addresses to hook.c and return None. The only exception that
 * leaves them is the job's: raised by a signal handler, such as KeyboardInterrupt, while Python's
 * function for actions ran.
 */
#include "agent/core/agent.h"
#include "agent/core/collectors.h"
#include "agent/core/hook.h"
#include "agent/python/pycall.h"

static struct {
	const struct pyapi *api;
	struct pyobject *act; /* Python's function for actions; an owned reference */
} py;

static struct pyobject *none(void)
{
	py.api->Py_IncRef(py.api->_Py_NoneStruct);
	return py.api->_Py_NoneStruct;
}

static struct pyobject *none_or_raise(void)
{
	return py.api->PyErr_Occurred() == NULL ? none() : NULL;
}

static void act(int action)
{
	struct pyobject *number, *result;

	if (py.api->PyErr_Occurred() != NULL)
		return;
	number = py.api->PyLong_FromLongLong(action);
	if (number == NULL) {
		py.api->PyErr_Clear();
		return;
	}
	result = py.api->PyObject_CallFunctionObjArgs(py.act, number, NULL);
	py.api->Py_DecRef(number);
	if (result != NULL)
		py.api->Py_DecRef(result);
}

/* The loader's iterator is new in each epoch; its data set is not. Only the address is used. */
static const void *dataset_of(struct pyobject *iterator)
{
	struct pyobject *dataset = py.api->PyObject_GetAttrString(iterator, "_dataset");

	if (dataset == NULL) {
		py.api->PyErr_Clear();
		return iterator;
	}
	py.api->Py_DecRef(dataset);
	return dataset;
}

static struct pyobject *loader_begins(_unused_ struct pyobject *self, struct pyobject *const *args,
				      ptrdiff_t cnt)
{
	if (cnt == 1)
		hook_loader_begins(dataset_of(args[0]));
	return none_or_raise();
}

static struct pyobject *loader_ends(_unused_ struct pyobject *self, struct pyobject *const *args,
				    ptrdiff_t cnt)
{
	if (cnt == 1)
		hook_loader_ends(dataset_of(args[0]));
	return none_or_raise();
}

static struct pyobject *step_begins(_unused_ struct pyobject *self, struct pyobject *const *args,
				    ptrdiff_t cnt)
{
	if (cnt == 1)
		hook_optimizer_begins(args[0]);
	return none_or_raise();
}

static struct pyobject *step_ends(_unused_ struct pyobject *self, struct pyobject *const *args,
				  ptrdiff_t cnt)
{
	if (cnt == 1)
		hook_optimizer_ends(args[0]);
	return none_or_raise();
}

static struct pyobject *scaler_begins(_unused_ struct pyobject *self, struct pyobject *const *args,
				      ptrdiff_t cnt)
{
	if (cnt == 1)
		hook_scaler_begins(args[0]);
	return none_or_raise();
}

static struct pyobject *backward_begins(_unused_ struct pyobject *self,
					_unused_ struct pyobject *const *args,
					_unused_ ptrdiff_t cnt)
{
	hook_backward_begins();
	return none_or_raise();
}

static struct pyobject *backward_ends(_unused_ struct pyobject *self,
				      _unused_ struct pyobject *const *args, _unused_ ptrdiff_t cnt)
{
	hook_backward_ends();
	return none_or_raise();
}

static struct pyobject *iteration(_unused_ struct pyobject *self,
				  _unused_ struct pyobject *const *args, _unused_ ptrdiff_t cnt)
{
	hook_iteration();
	return none_or_raise();
}

/* gc.callbacks: ("start" or "stop", {"generation": 2, ...}) */
static struct pyobject *on_gc(_unused_ struct pyobject *self, struct pyobject *const *args,
			      ptrdiff_t cnt)
{
	const char *phase = cnt == 2 ? py.api->PyUnicode_AsUTF8(args[0]) : NULL;
	struct pyobject *generation;

	if (phase != NULL && phase[0] == 's' && phase[1] == 't' && phase[2] == 'a') {
		hook_gc_begins();
	} else if (phase != NULL) {
		generation = py.api->PyDict_GetItemString(args[1], "generation");
		hook_gc_ends(generation != NULL ? (uint32_t)py.api->PyLong_AsLongLong(generation)
						: 0);
	}
	py.api->PyErr_Clear();
	return none();
}

static struct pymethod methods[] = {
	{ "perftracker_loader_begins", loader_begins, 0, NULL },
	{ "perftracker_loader_ends", loader_ends, 0, NULL },
	{ "perftracker_step_begins", step_begins, 0, NULL },
	{ "perftracker_step_ends", step_ends, 0, NULL },
	{ "perftracker_iteration", iteration, 0, NULL },
	{ "perftracker_gc", on_gc, 0, NULL },
	{ "perftracker_backward_begins", backward_begins, 0, NULL },
	{ "perftracker_backward_ends", backward_ends, 0, NULL },
	{ "perftracker_scaler_begins", scaler_begins, 0, NULL },
};

static struct pyobject *make_tuple(void)
{
	struct pyobject *tuple = py.api->PyTuple_New(ARRAY_SIZE(methods));

	for (size_t i = 0; tuple != NULL && i < ARRAY_SIZE(methods); i++) {
		struct pyobject *builtin = pyapi_builtin(py.api, &methods[i]);

		if (builtin == NULL) {
			py.api->Py_DecRef(tuple);
			return NULL;
		}
		(void)py.api->PyTuple_SetItem(tuple, (ptrdiff_t)i,
					      builtin); /* takes the reference */
	}
	return tuple;
}

struct pyobject *pt_agent_builtins(struct pyobject *callback)
{
	struct pyobject *tuple;

	py.api = pyapi_open();
	if (py.api == NULL)
		return NULL;
	tuple = make_tuple();
	if (tuple == NULL) {
		py.api->PyErr_Clear();
		return NULL;
	}
	py.api->Py_IncRef(callback);
	py.act = callback;
	hook_attach(act);
	collectors_note(FLIGHT_SOURCE_GC, NULL);
	return tuple;
}
