/* SPDX-License-Identifier: Apache-2.0 */
#include "e_ways.h"

#include "agent/gpu/cupti/cupti_layout.h"
#include "agent/gpu/cupti/cupti_library.h"
#include "agent/gpu/cupti/cupti_records.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSCRIBED = 1, KERNELS = 2, COPIES = 4, RUNTIME = 8, SELECTED = 16, GRAPHS = 32 };
enum { DEEP = SUBSCRIBED | KERNELS | COPIES | SELECTED };

#define CUPTI_KIND_GRAPH_TRACE 51 /* a graph's launch as one record */
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* A buffer of 1 MiB for each thread, and the device's memory, if nothing else is said. */
static const struct way {
	const char *name;
	unsigned what;
	size_t buffer_bytes;
	bool one_buffer, pinned;
} ways[] = {
	{ "off", 0, 0, false, false },
	{ "idle", SUBSCRIBED, MIB, false, false },
	{ "kernels", SUBSCRIBED | KERNELS, MIB, false, false },
	{ "copies", SUBSCRIBED | KERNELS | COPIES, MIB, false, false },
	{ "runtime", SUBSCRIBED | KERNELS | COPIES | RUNTIME, MIB, false, false },
	{ "graph-trace", SUBSCRIBED | GRAPHS, MIB, false, false },
	{ "selected", DEEP, MIB, false, false },
	{ "one-buffer", DEEP, MIB, true, false },
	{ "128K", DEEP, 128 * KIB, false, false },
	{ "8M", DEEP, 8 * MIB, false, false },
	{ "pinned", DEEP, MIB, false, true },
};

static const int kernel_kinds[] = { CUPTI_KIND_CONCURRENT_KERNEL };
static const int copy_kinds[] = { CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMCPY2, CUPTI_KIND_MEMSET,
				  CUPTI_KIND_SYNCHRONIZATION };
static const int runtime_kinds[] = { CUPTI_KIND_RUNTIME };
static const int graph_kinds[] = { CUPTI_KIND_GRAPH_TRACE };

static struct {
	const struct way *way;
	struct cupti_functions api;
	void *subscriber;
	_Atomic uint64_t kernels, records, buffers, bytes;
	bool finalizing;
	int64_t subscribe_ns, enable_ns;
} at;

const char *ways_name(size_t idx)
{
	return idx < ARRAY_SIZE(ways) ? ways[idx].name : NULL;
}

/* At the exit of the call that ways_finalize() makes: elsewhere graphs fail after it (CUDA 13.0). */
static void callback(void *data, uint32_t domain, uint32_t call, const void *info)
{
	const struct cupti_callback_data *made = info;

	(void)data;
	if (!at.finalizing || domain != CUPTI_DOMAIN_DRIVER || call != CUPTI_DRIVER_GET_VERSION ||
	    made->site != CUPTI_SITE_EXIT)
		return;
	at.finalizing = false;
	(void)at.api.unsubscribe(at.subscriber);
	(void)at.api.finalize();
}

static void request(uint8_t **buffer, size_t *size, size_t *record_max)
{
	*buffer = malloc(at.way->buffer_bytes);
	*size = *buffer != NULL ? at.way->buffer_bytes : 0;
	*record_max = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	void *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (buffer != NULL && valid > 0 && at.api.next_record(buffer, valid, &record) == 0) {
		at.records++;
		at.kernels +=
			((const struct cupti_record *)record)->kind == CUPTI_KIND_CONCURRENT_KERNEL;
	}
	at.buffers++;
	at.bytes += valid;
	free(buffer);
}

static int refuse(char why[static WAYS_WHY], const char *what, uint32_t result)
{
	(void)snprintf(why, WAYS_WHY, "%s: CUPTI's error %u", what, result);
	return result == CUPTI_MULTIPLE_SUBSCRIBERS ? -EBUSY : -ENOTSUP;
}

static void set(int attribute, uint8_t value)
{
	size_t size = sizeof(value);

	(void)at.api.set_attribute(attribute, &size, &value);
}

static uint32_t switch_kinds(const int *kinds, size_t cnt, bool on)
{
	uint32_t result = 0;

	for (size_t i = 0; i < cnt && result == 0; i++)
		result = on ? at.api.enable(kinds[i]) : at.api.disable(kinds[i]);
	return result;
}

static uint32_t switch_all(bool on)
{
	unsigned what = at.way->what;
	uint32_t result = 0;

	if (what & KERNELS)
		result = switch_kinds(kernel_kinds, ARRAY_SIZE(kernel_kinds), on);
	if (result == 0 && what & COPIES)
		result = switch_kinds(copy_kinds, ARRAY_SIZE(copy_kinds), on);
	if (result == 0 && what & RUNTIME)
		result = switch_kinds(runtime_kinds, ARRAY_SIZE(runtime_kinds), on);
	if (result == 0 && what & GRAPHS)
		result = switch_kinds(graph_kinds, ARRAY_SIZE(graph_kinds), on);
	return result;
}

/* As the agent chooses calls: with their kinds, and without the others. */
static void switch_calls(bool on)
{
	static const int call_kinds[] = { CUPTI_KIND_RUNTIME, CUPTI_KIND_DRIVER };

	if (!(at.way->what & SELECTED))
		return;
	(void)switch_kinds(call_kinds, ARRAY_SIZE(call_kinds), on);
	for (uint32_t call = 1; call < CUPTI_CALL_MAX && on; call++) {
		if (cupti_call_name(CUPTI_DOMAIN_RUNTIME, call) == NULL)
			(void)at.api.enable_runtime_call(call, 0);
		if (cupti_call_name(CUPTI_DOMAIN_DRIVER, call) == NULL)
			(void)at.api.enable_driver_call(call, 0);
	}
}

static int begin(char why[static WAYS_WHY])
{
	int64_t begin_ns = clock_mono_ns();
	uint32_t result = at.api.subscribe(&at.subscriber, callback, NULL);

	at.subscribe_ns = clock_mono_ns() - begin_ns;
	begin_ns = clock_mono_ns();
	if (result != 0)
		return refuse(why, "cuptiSubscribe", result);
	set(CUPTI_ATTR_PER_THREAD_BUFFER, !at.way->one_buffer);
	set(CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED, at.way->pinned);
	if (at.way->what & (KERNELS | GRAPHS))
		result = at.api.register_buffers(request, complete);
	if (result == 0)
		result = switch_all(true);
	if (result != 0)
		return refuse(why, "cuptiActivityEnable", result);
	switch_calls(true);
	at.enable_ns = clock_mono_ns() - begin_ns;
	return 0;
}

int ways_open(const char *name, char why[static WAYS_WHY])
{
	const char *library = getenv("CUPTI_LIBRARY");
	int ret;

	at.way = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (strcmp(ways[i].name, name) == 0)
			at.way = &ways[i];
	}
	if (at.way == NULL)
		return -EINVAL;
	at.kernels = at.records = at.buffers = at.bytes = 0;
	at.subscribe_ns = at.enable_ns = 0;
	if (at.way->what == 0)
		return 0;
	if (library != NULL)
		(void)dlopen(library, RTLD_NOW); /* it is the copy that is mapped then */
	ret = cupti_find(&at.api, why);
	if (ret < 0)
		return ret;
	if (at.way->what & SELECTED &&
	    (at.api.enable_runtime_call == NULL || at.api.enable_driver_call == NULL)) {
		(void)snprintf(why, WAYS_WHY, "this CUPTI can't record chosen calls");
		return -ENOTSUP;
	}
	return begin(why);
}

void ways_close(struct ways_seen *ret)
{
	int64_t begin_ns = clock_mono_ns(), disabled_ns = begin_ns;
	size_t dropped = 0;

	if (at.way->what != 0) {
		switch_calls(false);
		(void)switch_all(false);
		disabled_ns = clock_mono_ns();
	}
	if (at.way->what & (KERNELS | GRAPHS)) {
		(void)at.api.flush_all(CUPTI_FLUSH_FORCED);
		(void)at.api.dropped(NULL, 0, &dropped);
	}
	*ret = (struct ways_seen){ .kernels = at.kernels,
				   .records = at.records,
				   .buffers = at.buffers,
				   .bytes = at.bytes,
				   .dropped = dropped,
				   .subscribe_ns = at.subscribe_ns,
				   .enable_ns = at.enable_ns,
				   .disable_ns = disabled_ns - begin_ns,
				   .flush_ns = clock_mono_ns() - disabled_ns };
}

int64_t ways_finalize(void)
{
	int64_t begin_ns = clock_mono_ns();
	char why[GPUTRACE_WHY_MAX] = "";
	struct cuda_functions cuda;
	int version;

	if (at.way->what == 0 || cuda_find(&cuda, why) < 0)
		return 0;
	at.finalizing = true;
	(void)at.api.enable_callback(1, at.subscriber, CUPTI_DOMAIN_DRIVER,
				     CUPTI_DRIVER_GET_VERSION);
	(void)cuda.driver_version(&version);
	return clock_mono_ns() - begin_ns;
}
