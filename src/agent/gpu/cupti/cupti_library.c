/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/cupti/cupti_library.h"

#include "base/compat.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Where a function of a table goes and what it is called. */
struct entry {
	uint16_t off;
	bool optional;
	const char *symbol;
};

#define CUDA(field, symbol)                                           \
	{                                                             \
		offsetof(struct cuda_functions, field), false, symbol \
	}
#define CUDA_MAYBE(field, symbol)                                    \
	{                                                            \
		offsetof(struct cuda_functions, field), true, symbol \
	}
#define CUPTI(field, symbol)                                           \
	{                                                              \
		offsetof(struct cupti_functions, field), false, symbol \
	}
#define CUPTI_MAYBE(field, symbol)                                    \
	{                                                             \
		offsetof(struct cupti_functions, field), true, symbol \
	}

static const struct entry cuda_entries[] = {
	CUDA(device_count, "cuDeviceGetCount"),
	CUDA(device_get, "cuDeviceGet"),
	CUDA(device_name, "cuDeviceGetName"),
	CUDA(context_state, "cuDevicePrimaryCtxGetState"),
	CUDA(context_current, "cuCtxGetCurrent"),
	CUDA(driver_version, "cuDriverGetVersion"),
	CUDA(memory_info, "cuMemGetInfo_v2"),
	CUDA_MAYBE(capture_mode, "cuThreadExchangeStreamCaptureMode"),
};

static const struct entry cupti_entries[] = {
	CUPTI(get_version, "cuptiGetVersion"),
	CUPTI(subscribe, "cuptiSubscribe"),
	CUPTI(unsubscribe, "cuptiUnsubscribe"),
	CUPTI(enable_callback, "cuptiEnableCallback"),
	CUPTI(register_buffers, "cuptiActivityRegisterCallbacks"),
	CUPTI(enable, "cuptiActivityEnable"),
	CUPTI(disable, "cuptiActivityDisable"),
	CUPTI(flush_all, "cuptiActivityFlushAll"),
	CUPTI(finalize, "cuptiFinalize"),
	CUPTI(set_attribute, "cuptiActivitySetAttribute"),
	CUPTI(dropped, "cuptiActivityGetNumDroppedRecords"),
	CUPTI(next_record, "cuptiActivityGetNextRecord"),
	CUPTI_MAYBE(subscribe_v2, "cuptiSubscribe_v2"),
	CUPTI_MAYBE(set_thread_id_type, "cuptiSetThreadIdType"),
	CUPTI_MAYBE(register_clock, "cuptiActivityRegisterTimestampCallback"),
	CUPTI_MAYBE(enable_runtime_call, "cuptiActivityEnableRuntimeApi"),
	CUPTI_MAYBE(enable_driver_call, "cuptiActivityEnableDriverApi"),
	CUPTI_MAYBE(enable_all_syncs, "cuptiActivityEnableAllSyncRecords"),
	CUPTI_MAYBE(flush_period, "cuptiActivityFlushPeriod"),
};

/* NULL, or the symbol that is missing. */
static const char *fill(void *library, const struct entry *entries, size_t cnt, void *table)
{
	for (size_t i = 0; i < cnt; i++) {
		void *function = dlsym(library, entries[i].symbol);

		if (function == NULL && !entries[i].optional)
			return entries[i].symbol;
		memcpy((char *)table + entries[i].off, &function, sizeof(function));
	}
	return NULL;
}

int cuda_find(struct cuda_functions *ret, char ret_why[static GPUTRACE_WHY_MAX])
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	const char *missing;

	if (library == NULL) {
		gputrace_why(ret_why, "this process has not loaded CUDA", NULL);
		return -ENOENT;
	}
	missing = fill(library, cuda_entries, ARRAY_SIZE(cuda_entries), ret);
	if (missing == NULL)
		return 0;
	gputrace_why(ret_why, "libcuda.so.1 lacks ", missing, NULL);
	return -ENOTSUP;
}

/* --- where libcupti is --- */

static const char *const cupti_sonames[] = { "libcupti.so.13",	 "libcupti.so.12",
					     "libcupti.so.11.8", "libcupti.so.11.7",
					     "libcupti.so.11.6", "libcupti.so.11.3" };

/* Any of CUDA's libraries that wheels put into folders beside CUPTI's. */
static const char *const cudart_sonames[] = { "libcudart.so.13", "libcudart.so.12",
					      "libcudart.so.11.0" };

/* From the folder of libcudart, for each SONAME. */
static const char *const beside[] = { "/", "/../../cuda_cupti/lib/", "/../extras/CUPTI/lib64/" };

static void *find_mapped(const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library != NULL)
			return library;
	}
	return NULL;
}

#define PATH_BYTES 1024

struct path {
	size_t len;
	char text[PATH_BYTES];
};

/* False: it is too long. */
static bool path_append(struct path *path, const char *part, size_t len)
{
	if (len >= PATH_BYTES - path->len)
		return false;
	for (size_t i = 0; i < len; i++)
		path->text[path->len++] = part[i];
	path->text[path->len] = '\0';
	return true;
}

/* The copy that belongs to the CUDA runtime that the process has. */
static void *open_beside(const char *folder, size_t folder_len)
{
	for (size_t i = 0; i < ARRAY_SIZE(cupti_sonames) * ARRAY_SIZE(beside); i++) {
		const char *between = beside[i % ARRAY_SIZE(beside)];
		const char *name = cupti_sonames[i / ARRAY_SIZE(beside)];
		struct path path = { 0 };
		void *library;

		if (!path_append(&path, folder, folder_len) ||
		    !path_append(&path, between, strlen(between)) ||
		    !path_append(&path, name, strlen(name)))
			return NULL;
		library = dlopen(path.text, RTLD_LAZY);
		if (library != NULL)
			return library;
	}
	return NULL;
}

static void *open_cupti(void)
{
	void *library = find_mapped(cupti_sonames, ARRAY_SIZE(cupti_sonames)), *runtime, *symbol;
	const char *slash;
	Dl_info info;

	if (library != NULL)
		return library;
	runtime = find_mapped(cudart_sonames, ARRAY_SIZE(cudart_sonames));
	symbol = runtime != NULL ? dlsym(runtime, "cudaGetErrorString") : NULL;
	if (symbol != NULL && dladdr(symbol, &info) != 0 && info.dli_fname != NULL) {
		slash = strrchr(info.dli_fname, '/');
		if (slash != NULL)
			library = open_beside(info.dli_fname, (size_t)(slash - info.dli_fname));
	}
	for (size_t i = 0; i < ARRAY_SIZE(cupti_sonames) && library == NULL; i++)
		library = dlopen(cupti_sonames[i], RTLD_LAZY);
	return library;
}

int cupti_find(struct cupti_functions *ret, char ret_why[static GPUTRACE_WHY_MAX])
{
	void *library = open_cupti();
	const char *missing;

	if (library == NULL) {
		gputrace_why(ret_why,
			     "libcupti was not found: install CUDA's CUPTI (nvidia-cuda-cupti)",
			     NULL);
		return -ENOTSUP;
	}
	missing = fill(library, cupti_entries, ARRAY_SIZE(cupti_entries), ret);
	if (missing == NULL)
		return 0;
	gputrace_why(ret_why, "libcupti lacks ", missing, NULL);
	return -ENOTSUP;
}

static void append_number(char text[static 16], uint32_t number)
{
	char digits[16];
	size_t cnt = 0, len = 0;

	do {
		digits[cnt++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (cnt > 0)
		text[len++] = digits[--cnt];
	text[len] = '\0';
}

int cupti_explain(uint32_t result, const char *call, char ret_why[static GPUTRACE_WHY_MAX])
{
	char number[16];

	append_number(number, result);
	if (result == CUPTI_INSUFFICIENT_PRIVILEGES)
		gputrace_why(ret_why,
			     "the driver lets only administrators profile: set "
			     "NVreg_RestrictProfilingToAdminUsers=0",
			     NULL);
	else if (result == CUPTI_VIRTUALIZED_DEVICE)
		gputrace_why(ret_why, "this virtual GPU can't be profiled: enable it for the VM",
			     NULL);
	else if (result == CUPTI_NOT_INITIALIZED || result == CUPTI_UNKNOWN)
		gputrace_why(ret_why, "CUPTI found no usable driver (", call, ": error ", number,
			     ")", NULL);
	else
		gputrace_why(ret_why, call, ": CUPTI error ", number, NULL);
	return -ENOTSUP;
}

bool cuda_is_in_use(const struct cuda_functions *cuda)
{
	void *context = NULL;
	int cnt = 0;

	if (cuda->device_count(&cnt) != 0) /* cuInit() was not called */
		return false;
	if (cuda->context_current(&context) == 0 && context != NULL)
		return true;
	for (int i = 0; i < MIN(cnt, CUDA_DEVICE_MAX); i++) {
		unsigned flags;
		int device, active = 0;

		if (cuda->device_get(&device, i) == 0 &&
		    cuda->context_state(device, &flags, &active) == 0 && active != 0)
			return true;
	}
	return false;
}
