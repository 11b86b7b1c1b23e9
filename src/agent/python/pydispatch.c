/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of compiled functions of JAX. An object of jax.jit is called through a pointer in the
 * object itself (PEP 590, "vectorcall"), which is replaced here: type, attributes and identity
 * of the object stay as they are.
 */
#include "agent/python/pydispatch.h"

#include "agent/core/hook.h"
#include "agent/python/pycall.h"

#include <errno.h>
#include <string.h>

#define HAVE_VECTORCALL (1u << 11)

/* The beginning of PyTypeObject, the same from CPython 3.8 to 3.14. */
struct type_head {
	ptrdiff_t refcnt;
	void *type;
	ptrdiff_t size;
	const char *name;
	ptrdiff_t basicsize, itemsize;
	void *dealloc;
	ptrdiff_t vectorcall_offset;
	void *slots[13];
	unsigned long flags;
};
_Static_assert(offsetof(struct type_head, vectorcall_offset) == 56, "as PyTypeObject has it");
_Static_assert(offsetof(struct type_head, flags) == 168, "as PyTypeObject has it");

typedef struct pyobject *vectorcall(struct pyobject *callable, struct pyobject *const *args,
				    size_t flagged_cnt, struct pyobject *names);

/* Written under the interpreter lock. */
static struct {
	const struct pyapi *api;
	struct pyobject *connect; /* owned; NULL: never asked again */
	vectorcall *original;	  /* of all watched objects */
} dispatch;

/* False: the job's exception is set. */
static bool connect_first(void)
{
	const struct pyapi *api = dispatch.api;
	struct pyobject *again, *connect = dispatch.connect;

	if (connect == NULL)
		return true;
	api->Py_IncRef(connect);
	again = api->PyObject_CallFunctionObjArgs(connect, NULL);
	if (again == NULL || api->PyObject_IsTrue(again) != 1) {
		api->Py_DecRef(connect);
		dispatch.connect = NULL;
	}
	api->Py_DecRef(connect);
	pyapi_release(api, again);
	return api->PyErr_Occurred() == NULL;
}

static struct pyobject *call_watched(struct pyobject *callable, struct pyobject *const *args,
				     size_t flagged_cnt, struct pyobject *names)
{
	const struct pyapi *api = dispatch.api;
	struct pyobject *result;

	if (dispatch.connect != NULL && !connect_first())
		return NULL;
	hook_dispatch_begins(callable);
	if (api->PyErr_Occurred() != NULL)
		return NULL;
	result = dispatch.original(callable, args, flagged_cnt, names);
	if (result == NULL) {
		hook_dispatch_fails(callable);
		return NULL;
	}
	hook_dispatch_ends(callable);
	if (api->PyErr_Occurred() == NULL)
		return result;
	api->Py_DecRef(result);
	return NULL;
}

/* Where the object holds its pointer; NULL: it has none, or types have another layout here. */
static char *pointer_of(const struct pyapi *api, struct pyobject *object)
{
	struct type_head head;
	struct pyobject *type;
	long long flags, basicsize;

	memcpy(&type, (const char *)object + offsetof(struct type_head, type), sizeof(type));
	memcpy(&head, type, sizeof(head));
	flags = pyapi_attr_number(api, type, "__flags__", -1);
	basicsize = pyapi_attr_number(api, type, "__basicsize__", -1);
	if (flags < 0 || (unsigned long long)flags != head.flags || basicsize != head.basicsize ||
	    (head.flags & HAVE_VECTORCALL) == 0)
		return NULL;
	if (head.vectorcall_offset < (ptrdiff_t)(2 * sizeof(void *)) ||
	    head.vectorcall_offset > head.basicsize - (ptrdiff_t)sizeof(void *))
		return NULL;
	return (char *)object + head.vectorcall_offset;
}

int pt_agent_watch_dispatch(struct pyobject *object, struct pyobject *connect)
{
	const struct pyapi *api = pyapi_open();
	vectorcall *now, *ours = call_watched;
	char *pointer;

	if (api == NULL || api->free_threaded)
		return -ENOTSUP;
	pointer = pointer_of(api, object);
	if (pointer == NULL)
		return -ENOTSUP;
	memcpy(&now, pointer, sizeof(now));
	if (now == ours)
		return 0;
	if (now == NULL || (dispatch.original != NULL && now != dispatch.original))
		return -ENOTSUP;
	if (dispatch.original == NULL) {
		api->Py_IncRef(connect);
		dispatch.api = api;
		dispatch.connect = connect;
		dispatch.original = now;
	}
	memcpy(pointer, &ours, sizeof(ours));
	return 0;
}
