/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/pycall.h"

#include "base/compat.h"

#include <string.h>

#define METH_FASTCALL 0x0080

struct symbol {
	const char *name;
	size_t off; /* in struct pyapi */
};
#define SYMBOL(symbol)                                                 \
	{                                                              \
		.name = #symbol, .off = offsetof(struct pyapi, symbol) \
	}

static const struct symbol needed[] = {
	SYMBOL(Py_IncRef),
	SYMBOL(Py_DecRef),
	SYMBOL(PyErr_Occurred),
	SYMBOL(PyErr_Clear),
	SYMBOL(PyLong_FromLongLong),
	SYMBOL(PyLong_AsLongLong),
	SYMBOL(PyUnicode_FromString),
	SYMBOL(PyUnicode_AsUTF8),
	SYMBOL(PyObject_GetAttrString),
	SYMBOL(PyObject_IsTrue),
	SYMBOL(PyObject_CallFunctionObjArgs),
	SYMBOL(PyDict_GetItemString),
	SYMBOL(PyList_New),
	SYMBOL(PyList_Append),
	SYMBOL(PyTuple_New),
	SYMBOL(PyTuple_SetItem),
	SYMBOL(PyImport_GetModuleDict),
	SYMBOL(PySys_GetObject),
	SYMBOL(PyCFunction_NewEx),
	SYMBOL(PyEval_SaveThread),
	SYMBOL(PyEval_RestoreThread),
	SYMBOL(PyEval_SetProfile),
	SYMBOL(PyThreadState_Get),
	SYMBOL(PyThreadState_Swap),
	SYMBOL(PyThreadState_Next),
	SYMBOL(PyThreadState_SetAsyncExc),
	SYMBOL(PyInterpreterState_ThreadHead),
	SYMBOL(PyInterpreterState_Main),
	SYMBOL(_Py_NoneStruct),
	SYMBOL(PyCFunction_Type),
	SYMBOL(PyMethodDescr_Type),
};
static const struct symbol optional[] = {
	SYMBOL(PyCMethod_Type),
	SYMBOL(PyFrame_GetCode),
	SYMBOL(_PyEval_SetProfile),
};

static struct pyapi table;
static bool table_is_filled; /* under the interpreter lock */

static size_t find(struct pyapi *api, const struct symbol *symbols, size_t cnt)
{
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++) {
		void *address = dlsym(RTLD_DEFAULT, symbols[i].name);

		memcpy((char *)api + symbols[i].off, &address, sizeof(address));
		found += address != NULL;
	}
	return found;
}

/* "3.13t" has a "t" among its flags. */
static bool is_free_threaded(const struct pyapi *api)
{
	struct pyobject *flags = api->PySys_GetObject("abiflags");
	const char *text = flags != NULL ? api->PyUnicode_AsUTF8(flags) : NULL;

	if (text == NULL)
		api->PyErr_Clear();
	return text != NULL && strchr(text, 't') != NULL;
}

const struct pyapi *pyapi_open(void)
{
	struct pyapi api = { 0 };
	long long version;

	if (table_is_filled)
		return &table;
	if (find(&api, needed, ARRAY_SIZE(needed)) < ARRAY_SIZE(needed))
		return NULL;
	(void)find(&api, optional, ARRAY_SIZE(optional));
	version = api.PyLong_AsLongLong(api.PySys_GetObject("hexversion"));
	if (version >> 24 != 3)
		return NULL;
	api.minor = (int)(version >> 16 & 0xff);
	api.free_threaded = is_free_threaded(&api);
	table = api;
	table_is_filled = true;
	return &table;
}

static struct pyobject *without_error(const struct pyapi *api, struct pyobject *result)
{
	if (result == NULL)
		api->PyErr_Clear();
	return result;
}

struct pyobject *pyapi_builtin(const struct pyapi *api, struct pymethod *def)
{
	def->flags = METH_FASTCALL;
	return without_error(api, api->PyCFunction_NewEx(def, NULL, NULL));
}

struct pyobject *pyapi_attr(const struct pyapi *api, struct pyobject *object, const char *name)
{
	return without_error(api, api->PyObject_GetAttrString(object, name));
}

long long pyapi_attr_number(const struct pyapi *api, struct pyobject *object, const char *name,
			    long long fallback)
{
	struct pyobject *number = pyapi_attr(api, object, name);
	long long value;

	if (number == NULL)
		return fallback;
	value = api->PyLong_AsLongLong(number);
	api->Py_DecRef(number);
	if (value == -1 && api->PyErr_Occurred() != NULL) {
		api->PyErr_Clear();
		return fallback;
	}
	return value;
}

void pyapi_release(const struct pyapi *api, struct pyobject *object)
{
	if (object != NULL)
		api->Py_DecRef(object);
}

struct pyobject *pyapi_module(const struct pyapi *api, const char *name)
{
	struct pyobject *modules = api->PyImport_GetModuleDict();

	return modules != NULL ? api->PyDict_GetItemString(modules, name) : NULL;
}

struct pyobject *pyapi_call(const struct pyapi *api, struct pyobject *object, const char *name,
			    struct pyobject *const args[static 3])
{
	struct pyobject *function = pyapi_attr(api, object, name), *result;

	if (function == NULL)
		return NULL;
	result = api->PyObject_CallFunctionObjArgs(function, args[0], args[1], args[2], NULL);
	api->Py_DecRef(function);
	return without_error(api, result);
}
