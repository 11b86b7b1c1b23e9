/* SPDX-License-Identifier: Apache-2.0 */
#include "e_driver.h"

#include "base/clock.h"
#include "doubles/double.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define FAILED 2

#define DOUBLE_STREAM 7
#define DOUBLE_KERNEL_NS 2000

/* Compiled by the driver for whatever device there is. */
static const char ptx[] = ".version 6.4\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry pt_empty()\n"
			  "{\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry pt_spin(.param .u64 wanted)\n"
			  "{\n"
			  "	.reg .u64 %wanted, %begin, %now;\n"
			  "	.reg .pred %more;\n"
			  "	ld.param.u64 %wanted, [wanted];\n"
			  "	mov.u64 %begin, %globaltimer;\n"
			  "AGAIN:\n"
			  "	mov.u64 %now, %globaltimer;\n"
			  "	sub.u64 %now, %now, %begin;\n"
			  "	setp.lt.u64 %more, %now, %wanted;\n"
			  "	@%more bra AGAIN;\n"
			  "	ret;\n"
			  "}\n";

/* Needed by every program. */
struct calls {
	int (*init)(unsigned flags);
	int (*version)(int *ret);
	int (*device_count)(int *ret);
	int (*retain)(void **ret, int device);
	int (*set_current)(void *context);
	int (*load)(void **ret, const void *image);
	int (*function)(void **ret, void *module, const char *name);
	int (*stream_create)(void **ret, unsigned flags);
	int (*synchronize)(void *stream);
	int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		      unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
		      void **extra);
};

struct driver {
	void *handle, *stream, *empty, *spin;
	struct calls calls;
	struct driver_functions functions;
	int version;
	unsigned graph_nodes; /* of a double */
	struct {
		__typeof__(&double_context) context;
		__typeof__(&double_launch) launch;
		__typeof__(&double_graph) graph;
		__typeof__(&double_synchronize) synchronize;
	} twin;
};

struct symbol {
	void *slot;
	const char *name;
};

static const char *resolve(void *handle, const struct symbol *symbols, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		void *found = dlsym(handle, symbols[i].name);

		if (found == NULL)
			return symbols[i].name;
		memcpy(symbols[i].slot, &found, sizeof(found));
	}
	return NULL;
}

static const char *find_calls(struct driver *d)
{
	const struct symbol symbols[] = {
		{ &d->calls.retain, "cuDevicePrimaryCtxRetain" },
		{ &d->calls.set_current, "cuCtxSetCurrent" },
		{ &d->calls.load, "cuModuleLoadData" },
		{ &d->calls.function, "cuModuleGetFunction" },
		{ &d->calls.stream_create, "cuStreamCreate" },
		{ &d->calls.synchronize, "cuStreamSynchronize" },
		{ &d->calls.launch, "cuLaunchKernel" },
		{ &d->functions.begin_capture, "cuStreamBeginCapture_v2" },
		{ &d->functions.end_capture, "cuStreamEndCapture" },
		{ &d->functions.instantiate, "cuGraphInstantiateWithFlags" },
		{ &d->functions.graph_launch, "cuGraphLaunch" },
		{ &d->functions.is_capturing, "cuStreamIsCapturing" },
		{ &d->functions.event_create, "cuEventCreate" },
		{ &d->functions.event_record, "cuEventRecord" },
		{ &d->functions.event_query, "cuEventQuery" },
		{ &d->functions.event_elapsed, "cuEventElapsedTime" },
		{ &d->functions.alloc, "cuMemAlloc_v2" },
		{ &d->functions.alloc_host, "cuMemAllocHost_v2" },
		{ &d->functions.copy_to, "cuMemcpyHtoDAsync_v2" },
		{ &d->functions.copy_from, "cuMemcpyDtoHAsync_v2" },
		{ &d->functions.set, "cuMemsetD32Async" },
	};

	return resolve(d->handle, symbols, ARRAY_SIZE(symbols));
}

static const char *find_twin(struct driver *d)
{
	const struct symbol symbols[] = {
		{ &d->twin.context, "double_context" },
		{ &d->twin.launch, "double_launch" },
		{ &d->twin.graph, "double_graph" },
		{ &d->twin.synchronize, "double_synchronize" },
	};

	return resolve(d->handle, symbols, ARRAY_SIZE(symbols));
}

static int say(char why[static DRIVER_WHY], int status, const char *what, const char *which)
{
	(void)snprintf(why, DRIVER_WHY, "%s %s", what, which != NULL ? which : "");
	return status;
}

/* Another stream than the default one, as frameworks use. */
static const char *prepare(struct driver *d)
{
	void *context, *module;

	if (d->calls.retain(&context, 0) != 0 || d->calls.set_current(context) != 0)
		return "the context";
	if (d->calls.load(&module, ptx) != 0)
		return "cuModuleLoadData";
	if (d->calls.function(&d->empty, module, "pt_empty") != 0 ||
	    d->calls.function(&d->spin, module, "pt_spin") != 0)
		return "cuModuleGetFunction";
	return d->calls.stream_create(&d->stream, 1) != 0 ? "cuStreamCreate" : NULL;
}

static int start(struct driver *d, int64_t *ret_init_ns, char why[static DRIVER_WHY])
{
	const struct symbol symbols[] = {
		{ &d->calls.init, "cuInit" },
		{ &d->calls.version, "cuDriverGetVersion" },
		{ &d->calls.device_count, "cuDeviceGetCount" },
	};
	int64_t begin_ns = clock_mono_ns();
	int cnt = 0;

	if (resolve(d->handle, symbols, ARRAY_SIZE(symbols)) != NULL)
		return say(why, FAILED, "the driver lacks cuInit", NULL);
	if (d->calls.init(0) != 0)
		return say(why, SKIPPED, "cuInit failed: no device, or no permission", NULL);
	if (ret_init_ns != NULL)
		*ret_init_ns = clock_mono_ns() - begin_ns;
	if (d->calls.version(&d->version) != 0 || d->calls.device_count(&cnt) != 0 || cnt == 0)
		return say(why, SKIPPED, "no CUDA device", NULL);
	return 0;
}

int driver_open(struct driver **ret, int64_t *ret_init_ns, char why[static DRIVER_WHY])
{
	static struct driver opened; /* one in a process, until it ends */
	const char *twin = getenv("DOUBLE_CUDA"), *trouble;
	int status;

	opened.handle = dlopen(twin != NULL ? twin : "libcuda.so.1", RTLD_NOW);
	if (opened.handle == NULL)
		return say(why, SKIPPED, "no NVIDIA driver:", dlerror());
	status = start(&opened, ret_init_ns, why);
	if (status != 0)
		return status;
	trouble = twin != NULL ? find_twin(&opened) : find_calls(&opened);
	if (trouble != NULL)
		return say(why, FAILED, "the driver lacks", trouble);
	if (twin != NULL)
		opened.twin.context(1);
	else if ((trouble = prepare(&opened)) != NULL)
		return say(why, FAILED, "failed:", trouble);
	*ret = &opened;
	return 0;
}

bool driver_is_double(const struct driver *driver)
{
	return driver->twin.launch != NULL;
}

int driver_version(const struct driver *driver)
{
	return driver->version;
}

const struct driver_functions *driver_functions(const struct driver *driver)
{
	return &driver->functions;
}

void *driver_stream(const struct driver *driver)
{
	return driver->stream;
}

int driver_launch(struct driver *driver)
{
	if (!driver_is_double(driver))
		return driver->calls.launch(driver->empty, 1, 1, 1, 1, 1, 1, 0, driver->stream,
					    NULL, NULL);
	driver->twin.launch("pt_empty", DOUBLE_STREAM, DOUBLE_KERNEL_NS, 1);
	return 0;
}

/* At least one block for every multiprocessor of today's devices, and all at once. */
int driver_spin(struct driver *driver, int64_t ns)
{
	uint64_t wanted = (uint64_t)ns;
	void *params[] = { &wanted };

	if (!driver_is_double(driver))
		return driver->calls.launch(driver->spin, 160, 1, 1, 128, 1, 1, 0, driver->stream,
					    params, NULL);
	driver->twin.launch("pt_spin", DOUBLE_STREAM, ns, 1);
	return 0;
}

int driver_synchronize(struct driver *driver)
{
	if (!driver_is_double(driver))
		return driver->calls.synchronize(driver->stream);
	driver->twin.synchronize(DOUBLE_STREAM);
	return 0;
}

int driver_capture(struct driver *driver, unsigned cnt, void **ret)
{
	const struct driver_functions *f = &driver->functions;
	const int relaxed = 2;
	void *graph = NULL;
	int status;

	if (driver_is_double(driver)) {
		driver->graph_nodes = cnt;
		return 0;
	}
	status = f->begin_capture(driver->stream, relaxed);
	for (unsigned i = 0; i < cnt && status == 0; i++)
		status = driver_launch(driver);
	if (status == 0)
		status = f->end_capture(driver->stream, &graph);
	return status != 0 ? status : f->instantiate(ret, graph, 0);
}

int driver_replay(struct driver *driver, void *graph)
{
	if (!driver_is_double(driver))
		return driver->functions.graph_launch(graph, driver->stream);
	driver->twin.graph(DOUBLE_STREAM, driver->graph_nodes, DOUBLE_KERNEL_NS);
	return 0;
}
