/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end for AMD's GPUs: rocprofiler-sdk. All kinds of records must be declared when the
 * job's first ROCm library starts: the SDK calls rocprofiler_configure() in every library that
 * ROCP_TOOL_LIBRARIES names, and then accepts no more declarations. The recording context is
 * started in windows only; another one runs from the start and collects kernels' names while code
 * is loaded, since they can't be queried later.
 *
 * A declared tool costs a job something all the time: the SDK is between it and its queues. So
 * nothing is declared unless the job was started with ROCP_TOOL_LIBRARIES for it.
 *
 * Buffers' callbacks run on a thread of the SDK: they copy records into the agent's buffers and
 * never wait, so that the SDK's own buffers, which must not lose records, never block the job.
 * Source: rocprofiler-sdk's registration.h and buffer_tracing.h; rocprof_abi.h.
 */
#include "agent/gpu/buffers.h"
#include "agent/gpu/rocprof/rocprof_records.h"
#include "base/clock.h"
#include "base/compat.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define LIBRARY "libperftracker-agent"
#define ENV_SOCKET "PERFTRACKER_SOCKET"
#define ENV_TOOLS "ROCP_TOOL_LIBRARIES"
#define SDK_BUFFER_BYTES ((size_t)1 << 20)
#define SDK_WATERMARK_BYTES (SDK_BUFFER_BYTES / 2)
#define FLUSH_PERIOD_NS (500 * NSEC_PER_MSEC)
#define CALLBACK_LIMIT_NS (2 * NSEC_PER_SEC)
#define CLOCK_TRIES 8u

/* Calls that launch, allocate or free memory, copy, or wait. */
static const char *const calls[] = {
	"hipLaunchKernel",
	"hipLaunchKernel_spt",
	"hipExtLaunchKernel",
	"hipModuleLaunchKernel",
	"hipExtModuleLaunchKernel",
	"hipHccModuleLaunchKernel",
	"hipLaunchCooperativeKernel",
	"hipModuleLaunchCooperativeKernel",
	"hipLaunchKernelExC",
	"hipDrvLaunchKernelEx",
	"hipGraphLaunch",
	"hipGraphLaunch_spt",
	"hipMalloc",
	"hipFree",
	"hipMallocAsync",
	"hipFreeAsync",
	"hipMallocManaged",
	"hipHostMalloc",
	"hipHostAlloc",
	"hipHostFree",
	"hipFreeHost",
	"hipHostRegister",
	"hipHostUnregister",
	"hipMemCreate",
	"hipMemRelease",
	"hipMemMap",
	"hipMemUnmap",
	"hipMemSetAccess",
	"hipMemcpy",
	"hipMemcpyAsync",
	"hipMemcpyWithStream",
	"hipMemcpy2DAsync",
	"hipMemcpyPeerAsync",
	"hipMemset",
	"hipMemsetAsync",
	"hipStreamSynchronize",
	"hipStreamSynchronize_spt",
	"hipEventSynchronize",
	"hipStreamWaitEvent",
	"hipDeviceSynchronize",
};

_Static_assert(ARRAY_SIZE(calls) <= ROCPROF_CALL_MAX, "the reader has room for all calls");

static struct rocprof {
	bool forked;
	bool started;
	_Atomic bool declared;
	_Atomic bool finished;	 /* the process ends, and the SDK with it */
	_Atomic bool open;	 /* callbacks' records are wanted */
	_Atomic uint32_t inside; /* callbacks that are at work */
	struct rocprof_functions api;
	uint64_t names_context, context, sdk_buffer;
	uint32_t gfx_version;
	_Atomic uint64_t refused; /* records without a free buffer, or malformed ones */
	_Atomic uint64_t dropped; /* by the SDK, since it started */
	uint64_t dropped_before;  /* the window */
	int64_t flushed_ns;
	struct buffers buffers;
	struct rocprof_reader reader;
} rocprof;

/* --- what the SDK calls --- */

/* The symbol of a callback's record, or NULL. */
static const void *symbol_of(uint32_t kind, int32_t operation, uint32_t phase, const void *payload)
{
	return kind == ROCPROF_CALLBACK_CODE_OBJECT &&
			       operation == ROCPROF_CODE_OBJECT_KERNEL_SYMBOL &&
			       phase == ROCPROF_PHASE_LOAD
		       ? payload
		       : NULL;
}

/*
 * On any thread of the job that loads code. The two layouts can't be confused: the old one has a
 * phase where the new one has the kind.
 */
static void on_code_object(struct rocprof_callback record, _unused_ void *user, _unused_ void *data)
{
	struct rocprof_callback_0 old;
	struct rocprof_kernel_symbol symbol;
	const void *payload;

	memcpy(&old, &record, sizeof(old));
	payload = symbol_of(record.kind, record.operation, record.phase, record.payload);
	if (payload == NULL)
		payload = symbol_of(old.kind, old.operation, old.phase, old.payload);
	if (rocprof.forked || payload == NULL)
		return;
	memcpy(&symbol, payload, sizeof(symbol));
	if (symbol.size >= sizeof(symbol))
		rocprof_symbols_add(rocprof.reader.symbols, symbol.kernel, symbol.name);
}

/* Of one record. False: no buffer has room. */
static bool keep(const void *payload, uint8_t **buffer, size_t *used)
{
	size_t bytes;

	for (size_t tries = 0; tries < 2; tries++) {
		if (*buffer == NULL) {
			*buffer = buffers_take(&rocprof.buffers);
			*used = 0;
		}
		if (*buffer == NULL)
			return false;
		bytes = rocprof_record_copy(*buffer + *used, BUFFERS_BYTES - *used, payload);
		*used += bytes;
		if (bytes > 0 || BUFFERS_BYTES - *used >= ROCPROF_RECORD_MAX)
			return bytes > 0;
		(void)buffers_fill(&rocprof.buffers, *buffer, *used);
		*buffer = NULL;
	}
	return false;
}

static void keep_all(struct rocprof_header **headers, size_t cnt)
{
	uint8_t *buffer = NULL;
	size_t used = 0, refused = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (headers[i] == NULL || headers[i]->payload == NULL ||
		    headers[i]->category != ROCPROF_CATEGORY_TRACING)
			continue;
		refused += !keep(headers[i]->payload, &buffer, &used);
	}
	if (buffer != NULL)
		(void)buffers_fill(&rocprof.buffers, buffer, used);
	if (refused > 0)
		atomic_fetch_add_explicit(&rocprof.refused, refused, memory_order_relaxed);
}

/* A thread of the SDK. dropped counts from its start. */
static void on_buffer(_unused_ uint64_t context, _unused_ uint64_t sdk_buffer,
		      struct rocprof_header **headers, size_t cnt, _unused_ void *data,
		      uint64_t dropped)
{
	if (rocprof.forked)
		return;
	atomic_fetch_add(&rocprof.inside, 1);
	atomic_store_explicit(&rocprof.dropped, dropped, memory_order_relaxed);
	if (atomic_load(&rocprof.open))
		keep_all(headers, cnt);
	atomic_fetch_sub(&rocprof.inside, 1);
}

/* --- declaring --- */

static void *find_sdk(void)
{
	static const char *const sonames[] = { "librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
					       "librocprofiler-sdk.so" };

	for (size_t i = 0; i < ARRAY_SIZE(sonames); i++) {
		void *library = dlopen(sonames[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library != NULL)
			return library;
	}
	return NULL;
}

static bool find_functions(void *library)
{
	static const struct {
		uint16_t off;
		const char *symbol;
	} entries[] = {
#define ENTRY(field, symbol) { offsetof(struct rocprof_functions, field), "rocprofiler_" symbol }
		ENTRY(is_initialized, "is_initialized"),
		ENTRY(create_context, "create_context"),
		ENTRY(start_context, "start_context"),
		ENTRY(stop_context, "stop_context"),
		ENTRY(create_buffer, "create_buffer"),
		ENTRY(flush_buffer, "flush_buffer"),
		ENTRY(trace_buffered, "configure_buffer_tracing_service"),
		ENTRY(trace_called, "configure_callback_tracing_service"),
		ENTRY(operations, "iterate_buffer_tracing_kind_operations"),
		ENTRY(operation_name, "query_buffer_tracing_kind_operation_name"),
		ENTRY(agents, "query_available_agents"),
		ENTRY(clock, "get_timestamp"),
#undef ENTRY
	};

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		void *function = dlsym(library, entries[i].symbol);

		if (function == NULL)
			return false;
		memcpy((char *)&rocprof.api + entries[i].off, &function, sizeof(function));
	}
	return true;
}

/* Numbers of calls differ between versions, names do not. */
static int on_operation(int kind, int32_t operation, _unused_ void *data)
{
	struct rocprof_reader *reader = &rocprof.reader;
	const char *name = NULL;
	uint64_t len = 0;

	if (rocprof.api.operation_name(kind, operation, &name, &len) != ROCPROF_OK || name == NULL)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (strcmp(calls[i], name) == 0 && reader->call_cnt < ROCPROF_CALL_MAX) {
			reader->call_texts[reader->call_cnt] = calls[i];
			reader->calls[reader->call_cnt++] = operation;
		}
	}
	return 0;
}

static int on_agents(_unused_ int version, const void **agents, size_t cnt, _unused_ void *data)
{
	struct rocprof_reader *reader = &rocprof.reader;

	for (size_t i = 0; i < cnt && reader->device_cnt < ROCPROF_DEVICE_MAX; i++) {
		const struct rocprof_agent *agent = agents[i];

		if (agent->size < sizeof(*agent) || agent->type != ROCPROF_AGENT_GPU)
			continue;
		if (reader->device_cnt == 0)
			rocprof.gfx_version = agent->gfx_version;
		reader->devices[reader->device_cnt++] = agent->id;
	}
	return ROCPROF_OK;
}

static bool map_symbols(void)
{
	void *memory = mmap(NULL, sizeof(struct rocprof_symbols), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	rocprof.reader.symbols = memory;
	return true;
}

static bool declare_names(void)
{
	static const int32_t symbols[] = { ROCPROF_CODE_OBJECT_KERNEL_SYMBOL };
	const struct rocprof_functions *api = &rocprof.api;

	return api->create_context(&rocprof.names_context) == ROCPROF_OK &&
	       api->trace_called(rocprof.names_context, ROCPROF_CALLBACK_CODE_OBJECT, symbols,
				 ARRAY_SIZE(symbols), on_code_object, NULL) == ROCPROF_OK;
}

/* Kernels must be had; copies and calls are left out where the SDK has none. */
static bool declare_records(void)
{
	const struct rocprof_functions *api = &rocprof.api;
	struct rocprof_reader *reader = &rocprof.reader;

	if (api->create_context(&rocprof.context) != ROCPROF_OK ||
	    api->create_buffer(rocprof.context, SDK_BUFFER_BYTES, SDK_WATERMARK_BYTES,
			       ROCPROF_POLICY_LOSSLESS, on_buffer, NULL,
			       &rocprof.sdk_buffer) != ROCPROF_OK ||
	    api->trace_buffered(rocprof.context, ROCPROF_BUFFER_KERNEL_DISPATCH, NULL, 0,
				rocprof.sdk_buffer) != ROCPROF_OK)
		return false;
	(void)api->trace_buffered(rocprof.context, ROCPROF_BUFFER_MEMORY_COPY, NULL, 0,
				  rocprof.sdk_buffer);
	(void)api->operations(ROCPROF_BUFFER_HIP_RUNTIME_API, on_operation, NULL);
	if (reader->call_cnt > 0)
		(void)api->trace_buffered(rocprof.context, ROCPROF_BUFFER_HIP_RUNTIME_API,
					  reader->calls, reader->call_cnt, rocprof.sdk_buffer);
	return true;
}

/* Calls the SDK only: neither HIP nor HSA may be called here. -1 makes the SDK drop the tool. */
static int initialize(_unused_ rocprof_finalize_fn finalize, _unused_ void *data)
{
	if (rocprof.forked || !map_symbols())
		return -1;
	(void)rocprof.api.agents(ROCPROF_AGENT_VERSION, on_agents, sizeof(struct rocprof_agent),
				 NULL);
	if (!declare_names() || !declare_records() ||
	    rocprof.api.start_context(rocprof.names_context) != ROCPROF_OK)
		return -1;
	atomic_store_explicit(&rocprof.declared, true, memory_order_release);
	return 0;
}

static void finalize(_unused_ void *data)
{
	atomic_store(&rocprof.open, false);
	atomic_store(&rocprof.finished, true);
}

/* Weak, as in the agent: NULL in programs other than Python, which are no workers. */
extern __attribute__((weak)) int Py_IsInitialized(void);

static bool is_wanted(void)
{
	const char *tools = getenv(ENV_TOOLS);

	return !rocprof.forked && Py_IsInitialized != NULL && Py_IsInitialized() != 0 &&
	       getenv(ENV_SOCKET) != NULL && tools != NULL && strstr(tools, LIBRARY) != NULL;
}

struct rocprof_configuration *rocprofiler_configure(uint32_t version, const char *text,
						    uint32_t priority,
						    struct rocprof_client *client);

/* Exported: the SDK looks for the name. NULL: declares nothing. */
__attribute__((visibility("default"))) struct rocprof_configuration *
rocprofiler_configure(uint32_t version, _unused_ const char *text, _unused_ uint32_t priority,
		      struct rocprof_client *client)
{
	static struct rocprof_configuration configuration = {
		.size = sizeof(configuration),
		.initialize = initialize,
		.finalize = finalize,
	};
	void *library;

	if (!is_wanted() || atomic_load(&rocprof.declared) || version < ROCPROF_VERSION_OLDEST ||
	    version >= ROCPROF_VERSION_2)
		return NULL;
	library = find_sdk();
	if (library == NULL || !find_functions(library))
		return NULL;
	client->name = "perftracker";
	return &configuration;
}

/* --- probe --- */

/* Some ROCm library of the process has started. */
static bool in_use(void *library)
{
	int (*is_initialized)(int *ret);
	void *symbol = dlsym(library, "rocprofiler_is_initialized");
	int status = 0;

	if (symbol == NULL)
		return false;
	memcpy(&is_initialized, &symbol, sizeof(symbol));
	return is_initialized(&status) == ROCPROF_OK && status == 1;
}

static int probe(char ret_why[static GPUTRACE_WHY_MAX])
{
	void *library = rocprof.forked ? NULL : find_sdk();

	if (library == NULL || !in_use(library)) {
		gputrace_why(ret_why, "this process uses neither CUDA nor ROCm", NULL);
		return -ENOENT;
	}
	if (atomic_load(&rocprof.finished)) {
		gputrace_why(ret_why, "rocprofiler-sdk has ended", NULL);
		return -ENOTSUP;
	}
	if (!atomic_load_explicit(&rocprof.declared, memory_order_acquire)) {
		gputrace_why(
			ret_why,
			"ROCm started without the agent: name libperftracker-agent.so in " ENV_TOOLS,
			NULL);
		return -ENOTSUP;
	}
	if (atomic_load(&rocprof.reader.symbols->cnt) == 0) {
		gputrace_why(ret_why, "this process has loaded no kernels", NULL);
		return -ENOENT;
	}
	return 0;
}

/* --- start --- */

/* Added to the SDK's times. Of several looks the shortest counts. */
static int64_t clock_offset(void)
{
	int64_t offset = 0, best = INT64_MAX;

	for (size_t i = 0; i < CLOCK_TRIES; i++) {
		uint64_t theirs = 0;
		int64_t before = clock_mono_ns(), took;

		if (rocprof.api.clock(&theirs) != ROCPROF_OK)
			continue;
		took = clock_mono_ns() - before;
		if (took >= best)
			continue;
		best = took;
		offset = before + took / 2 - (int64_t)theirs;
	}
	return offset;
}

/* "AMD gfx90a": the last two digits of three are of base 16. */
static void name_device(const struct gputrace_sink *sink)
{
	static const char digits[] = "0123456789abcdef";
	char name[16] = "AMD gfx";
	uint32_t major = rocprof.gfx_version / 10000 % 100;
	size_t len = strlen(name);

	if (major == 0)
		return;
	if (major >= 10)
		name[len++] = digits[major / 10];
	name[len++] = digits[major % 10];
	name[len++] = digits[rocprof.gfx_version / 100 % 100 & 15u];
	name[len++] = digits[rocprof.gfx_version % 100 & 15u];
	sink->device(name);
}

static int explain(int status, char ret_why[static GPUTRACE_WHY_MAX])
{
	char number[4] = { (char)('0' + status / 10 % 10), (char)('0' + status % 10) };

	if (status == ROCPROF_CONTEXT_CONFLICT) {
		gputrace_why(ret_why, "another profiler uses rocprofiler-sdk in this process",
			     NULL);
		return -EBUSY;
	}
	gputrace_why(ret_why, "rocprofiler_start_context: status ", number, NULL);
	return -ENOTSUP;
}

static int start(const struct gputrace_sink *sink, char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret = buffers_open(&rocprof.buffers, BUFFERS_CNT, BUFFERS_BYTES), status;

	if (ret < 0) {
		gputrace_why(ret_why, "no memory for the GPU's buffers", NULL);
		return ret;
	}
	rocprof_reader_begin(&rocprof.reader, sink, clock_offset());
	rocprof.dropped_before = atomic_load(&rocprof.dropped);
	rocprof.flushed_ns = clock_mono_ns();
	atomic_store(&rocprof.refused, 0);
	atomic_store(&rocprof.open, true);
	status = rocprof.api.start_context(rocprof.context);
	if (status != ROCPROF_OK) {
		atomic_store(&rocprof.open, false);
		return explain(status, ret_why);
	}
	rocprof.started = true;
	name_device(sink);
	return 0;
}

/* --- drain --- */

/* The SDK hands a buffer over when it is half full: in a quiet job, never. */
static void flush_now_and_then(void)
{
	int64_t now_ns = clock_mono_ns();

	if (!rocprof.started || atomic_load(&rocprof.finished) ||
	    now_ns - rocprof.flushed_ns < FLUSH_PERIOD_NS)
		return;
	rocprof.flushed_ns = now_ns;
	(void)rocprof.api.flush_buffer(rocprof.sdk_buffer);
}

static size_t drain(size_t most)
{
	flush_now_and_then();
	return buffers_drain(&rocprof.buffers, rocprof_reader_read, &rocprof.reader, most);
}

/* --- stop and close --- */

static void stop(void)
{
	uint64_t dropped;

	if (!atomic_load(&rocprof.finished)) {
		(void)rocprof.api.stop_context(rocprof.context);
		(void)rocprof.api.flush_buffer(rocprof.sdk_buffer);
	}
	rocprof.started = false;
	dropped = atomic_load(&rocprof.dropped) - rocprof.dropped_before +
		  atomic_exchange(&rocprof.refused, 0);
	if (dropped > 0)
		rocprof.reader.sink->lose(GPUTRACE_DROPPED, dropped);
}

/* Kernels that end after the window are left out. The context stays, stopped. */
static int close_session(char ret_why[static GPUTRACE_WHY_MAX])
{
	int64_t limit_ns = clock_mono_ns() + CALLBACK_LIMIT_NS;

	atomic_store(&rocprof.open, false);
	while (atomic_load(&rocprof.inside) > 0) {
		if (clock_mono_ns() > limit_ns) {
			gputrace_why(ret_why, "a callback of rocprofiler-sdk does not end", NULL);
			return -ETIMEDOUT;
		}
		(void)sched_yield();
	}
	(void)buffers_reset(&rocprof.buffers);
	return 0;
}

static void forked(void)
{
	rocprof.forked = true;
}

const struct gputrace_ops gputrace_rocprof = {
	.name = "rocprof",
	.probe = probe,
	.start = start,
	.drain = drain,
	.stop = stop,
	.close = close_session,
	.forked = forked,
};
