/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ways to load the library into a Python process before the package is imported, both by an
 * environment variable:
 *
 * LD_PRELOAD: the constructor runs before the interpreter starts and completes the environment, so
 * that `import torch` finds the package as under `perftracker run`. It reaches every program that
 * the job starts; programs other than Python, and those without a daemon in their environment, are
 * left alone.
 *
 * CUDA_INJECTION64_PATH: CUDA's driver calls InitializeInjection() in cuInit(), on any thread, with
 * or without the interpreter lock. It only asks the interpreter for a call on the main thread,
 * which attaches the package.
 *
 * The only state is that the call was requested. Survives: fork (the child's hook does nothing), a
 * second copy (the package uses the one already loaded), exit in progress (the interpreter drops
 * pending calls).
 */
#include "agent/core/agent.h"
#include "agent/python/pycall.h"
#include "base/compat.h"
#include "format/shared/message.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libperftracker-agent"
#define ENTRY_POINT "_perftracker_autoload"
#define PYTHONPATH_MAX 16384 /* a longer one is not changed */

/* Weak, as in pystack.c: NULL in programs other than Python. */
extern __attribute__((weak)) int Py_IsInitialized(void);

/* Relative to the library's directory. Wheels are not listed: their job has the package. */
static const char *const package_places[] = {
	"/../../../python", /* build tree inside the source tree */
	"/perftracker/python",
	"/python",
	"/../perftracker/python",
	"/../lib/perftracker/python",
	"/../share/perftracker/python",
	"/../../share/perftracker/python",
};

/* Appends more to text[size]; false when there is no room. */
static bool append(char *text, size_t size, const char *more)
{
	size_t len = strlen(text), more_len = strlen(more);

	if (more_len >= size - len)
		return false;
	memcpy(text + len, more, more_len + 1);
	return true;
}

static bool find_library(char ret[static PATH_MAX])
{
	static const char here = 0;
	Dl_info info;

	return dladdr(&here, &info) != 0 && info.dli_fname != NULL &&
	       realpath(info.dli_fname, ret) != NULL;
}

/* Finds the package that belongs to the library. */
static bool find_package(const char *library, char ret[static PATH_MAX])
{
	const char *slash = strrchr(library, '/');
	size_t len = slash != NULL ? (size_t)(slash - library) : 0;
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(package_places) && len < sizeof(path); i++) {
		memcpy(path, library, len);
		path[len] = '\0';
		if (append(path, sizeof(path), package_places[i]) &&
		    append(path, sizeof(path), "/" ENTRY_POINT ".py") && access(path, R_OK) == 0) {
			*strrchr(path, '/') = '\0';
			return realpath(path, ret) != NULL;
		}
	}
	return false;
}

/* Before main() */

static bool is_on_path(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	for (const char *at = path; (at = strstr(at, folder)) != NULL; at++) {
		if ((at == path || at[-1] == ':') && (at[len] == ':' || at[len] == '\0'))
			return true;
	}
	return false;
}

/* As `perftracker run` does; a child of such a program inherits it and changes nothing. */
static void complete_environment(const char *library, const char *package)
{
	const char *old = getenv("PYTHONPATH");
	char path[PYTHONPATH_MAX] = "";

	(void)setenv(PT_ENV_AGENT, library, 0);
	if (old == NULL || old[0] == '\0') /* a trailing colon would add the working directory */
		(void)setenv("PYTHONPATH", package, 1);
	else if (!is_on_path(old, package) && append(path, sizeof(path), package) &&
		 append(path, sizeof(path), ":") && append(path, sizeof(path), old))
		(void)setenv("PYTHONPATH", path, 1);
}

/*
 * Only if the dynamic linker loaded the agent before the program began: later, another thread may
 * be reading the environment.
 */
__attribute__((constructor)) static void prepare(void)
{
	const char *preloaded = getenv("LD_PRELOAD");
	char library[PATH_MAX], package[PATH_MAX];

	if (Py_IsInitialized == NULL || Py_IsInitialized() != 0 || preloaded == NULL ||
	    strstr(preloaded, LIBRARY) == NULL || getenv(PT_ENV_SOCKET) == NULL)
		return;
	if (find_library(library) && find_package(library, package))
		complete_environment(library, package);
}

/* In a running interpreter */

static void *find_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/*
 * For a torch that is imported later; at the end of sys.path, so that it hides nothing of the
 * job's. Any error is the agent's: no Python code runs here.
 */
static void add_to_sys_path(const struct pyapi *api)
{
	char library[PATH_MAX], package[PATH_MAX];
	struct pyobject *path = api->PySys_GetObject("path"), *folder, *there;

	if (path == NULL || !find_library(library) || !find_package(library, package))
		return;
	folder = api->PyUnicode_FromString(package);
	if (folder != NULL) {
		there = pyapi_call(api, path, "__contains__", (struct pyobject *[3]){ folder });
		if (there != NULL && api->PyObject_IsTrue(there) == 0)
			(void)api->PyList_Append(path, folder);
		pyapi_release(api, there);
		api->Py_DecRef(folder);
	}
	api->PyErr_Clear();
}

/*
 * A failed import is the agent's own error. Any other error that is set was raised for the job, by
 * a signal handler that ran meanwhile.
 */
static bool error_is_ours(void)
{
	static const char *const names[] = { "PyExc_ImportError", "PyExc_SyntaxError",
					     "PyExc_FileNotFoundError", "PyExc_PermissionError" };
	int (*matches)(struct pyobject *) = find_symbol("PyErr_ExceptionMatches");

	for (size_t i = 0; matches != NULL && i < ARRAY_SIZE(names); i++) {
		struct pyobject **error = find_symbol(names[i]);

		if (error != NULL && matches(*error) != 0)
			return true;
	}
	return false;
}

static int call_inject(const struct pyapi *api, struct pyobject *module)
{
	struct pyobject *inject = pyapi_attr(api, module, "inject"), *result;

	if (inject == NULL)
		return 0;
	result = api->PyObject_CallFunctionObjArgs(inject, NULL);
	api->Py_DecRef(inject);
	pyapi_release(api, result);
	return result != NULL ? 0 : -1;
}

/* Returns 0, or -1 with an error set that belongs to the job, as Py_AddPendingCall requires. */
static int attach(_unused_ void *arg)
{
	struct pyobject *(*import)(const char *) = find_symbol("PyImport_ImportModule");
	const struct pyapi *api = pyapi_open();
	struct pyobject *module;
	int ret;

	if (api == NULL || import == NULL)
		return 0;
	add_to_sys_path(api);
	module = import(ENTRY_POINT);
	if (module == NULL && error_is_ours())
		api->PyErr_Clear();
	if (module == NULL)
		return api->PyErr_Occurred() != NULL ? -1 : 0;
	ret = call_inject(api, module);
	api->Py_DecRef(module);
	return ret;
}

int InitializeInjection(void)
{
	static _Atomic bool asked;
	int (*add_call)(int (*)(void *), void *);
	int (*is_initialized)(void);

	if (getenv(PT_ENV_SOCKET) == NULL)
		return 1;
	add_call = find_symbol("Py_AddPendingCall");
	is_initialized = find_symbol("Py_IsInitialized");
	if (add_call == NULL || is_initialized == NULL || is_initialized() == 0)
		return 1;
	if (!atomic_exchange(&asked, true) && add_call(attach, NULL) != 0)
		atomic_store(&asked, false);
	return 1;
}
