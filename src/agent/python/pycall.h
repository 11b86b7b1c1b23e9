/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of CPython's C interface that the agent calls. The library is
 * not linked to Python: they are looked up once, by name, in the process that has
 * loaded it. Structures are declared here as the stable ABI fixes them.
 * Source: Python/C API Reference, "Stable Application Binary Interface".
 *
 * All functions need the interpreter lock unless documented otherwise.
 */
#pragma once

#include "base/base.h"

struct pyobject;
struct pythread; /* PyThreadState */

/* Arguments are borrowed. The result is a new reference, or NULL with an error set. */
typedef struct pyobject *pyfast(struct pyobject *self, struct pyobject *const *args, ptrdiff_t cnt);
/* PyEval_SetProfile's callback. Returns 0, or -1 with an error set. */
typedef int pyprofile(struct pyobject *arg, struct pyobject *frame, int what,
		      struct pyobject *what_arg);

/* PyMethodDef. Python keeps its address: it must be static. */
struct pymethod {
	const char *name;
	pyfast *call;
	int flags; /* pyapi_builtin sets METH_FASTCALL */
	const char *doc;
};

/* Named as in the Python/C API Reference; borrowed and taken references are said here. */
struct pyapi {
	/* In every supported CPython (docs/python-versions.md). */
	void (*Py_IncRef)(struct pyobject *object);
	void (*Py_DecRef)(struct pyobject *object);
	struct pyobject *(*PyErr_Occurred)(void); /* borrowed */
	void (*PyErr_Clear)(void);
	struct pyobject *(*PyLong_FromLongLong)(long long value);
	long long (*PyLong_AsLongLong)(struct pyobject *object);
	struct pyobject *(*PyUnicode_FromString)(const char *text);
	const char *(*PyUnicode_AsUTF8)(struct pyobject *object); /* lives as long as object */
	struct pyobject *(*PyObject_GetAttrString)(struct pyobject *object, const char *name);
	int (*PyObject_IsTrue)(struct pyobject *object);
	struct pyobject *(*PyObject_CallFunctionObjArgs)(struct pyobject *callable, ...);
	struct pyobject *(*PyDict_GetItemString)(struct pyobject *dict,
						 const char *key); /* borrowed, no error */
	struct pyobject *(*PyList_New)(ptrdiff_t cnt);
	int (*PyList_Append)(struct pyobject *list, struct pyobject *item);
	struct pyobject *(*PyTuple_New)(ptrdiff_t cnt);
	int (*PyTuple_SetItem)(struct pyobject *tuple, ptrdiff_t at,
			       struct pyobject *item);	       /* takes item */
	struct pyobject *(*PyImport_GetModuleDict)(void);      /* sys.modules, borrowed */
	struct pyobject *(*PySys_GetObject)(const char *name); /* borrowed, no error */
	struct pyobject *(*PyCFunction_NewEx)(struct pymethod *def, struct pyobject *self,
					      struct pyobject *module);
	struct pythread *(*PyEval_SaveThread)(void);
	void (*PyEval_RestoreThread)(struct pythread *thread);
	void (*PyEval_SetProfile)(pyprofile *callback, struct pyobject *arg);
	struct pythread *(*PyThreadState_Get)(void);
	struct pythread *(*PyThreadState_Swap)(struct pythread *thread);
	struct pythread *(*PyThreadState_Next)(struct pythread *thread);
	int (*PyThreadState_SetAsyncExc)(unsigned long thread_id, struct pyobject *error);
	struct pythread *(*PyInterpreterState_ThreadHead)(void *interpreter);
	void *(*PyInterpreterState_Main)(void);
	struct pyobject *_Py_NoneStruct; /* None, borrowed */
	const void *PyCFunction_Type;	 /* of built-in functions and bound built-in methods */
	const void *PyMethodDescr_Type;	 /* of methods of C types, such as list.append */

	/* In some versions; NULL in the others. */
	const void *PyCMethod_Type; /* as PyCFunction_Type; 3.9 and later */
	struct pyobject *(*PyFrame_GetCode)(struct pyobject *frame); /* 3.9 and later */
	int (*_PyEval_SetProfile)(struct pythread *thread, pyprofile *callback,
				  struct pyobject *arg); /* 3.9 and later */

	int minor;	    /* of 3.x */
	bool free_threaded; /* there is no interpreter lock */
};

/* The table, filled at the first call. NULL: a symbol is missing, or this is not Python 3. */
const struct pyapi *pyapi_open(void);

/*
 * A built-in function that calls def->call; def is static. A new reference, or NULL with
 * the error cleared.
 */
struct pyobject *pyapi_builtin(const struct pyapi *api, struct pymethod *def);

/*
 * object.name as a new reference, NULL when there is none. Clears any error; no error may be set
 * before the call.
 */
struct pyobject *pyapi_attr(const struct pyapi *api, struct pyobject *object, const char *name);

/* object.name when it is a number that fits, fallback otherwise. As above. */
long long pyapi_attr_number(const struct pyapi *api, struct pyobject *object, const char *name,
			    long long fallback);

/* Releases a reference; NULL is fine. */
void pyapi_release(const struct pyapi *api, struct pyobject *object);

/* A module in sys.modules, borrowed; NULL if it was not imported. */
struct pyobject *pyapi_module(const struct pyapi *api, const char *name);

/*
 * object.name(...), up to 3 arguments that are borrowed, NULL after the last. A new
 * reference, or NULL with the error cleared.
 */
struct pyobject *pyapi_call(const struct pyapi *api, struct pyobject *object, const char *name,
			    struct pyobject *const args[static 3]);
