/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See rocprof_double.h. Layouts are those of the published headers: ROCm 7 (1.x), and
 * with DOUBLE_OLD those of ROCm 6.4 (0.6), whose correlations have no ancestor.
 * Buffers' callbacks come on a thread of their own, as the SDK's do.
 */
#include "rocprof_double.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT DOUBLE_EXPORT

enum { OK, ERROR, NOT_FOUND = 3, LOCKED = 16, INVALID = 19 };
enum { HIP_API = 5, COPY = 10, KERNEL = 11, CODE_OBJECT = 10 };

struct handle {
	uint64_t handle;
};

struct correlation {
	uint64_t internal, external;
#ifndef DOUBLE_OLD
	uint64_t ancestor;
#endif
};

struct async_correlation {
	uint64_t internal, external;
};

struct callback_record {
	struct handle context;
	uint64_t thread;
	struct correlation correlation;
	int kind;
	int32_t operation;
	int phase;
	void *payload;
};

struct symbol {
	uint64_t size, kernel_id, code_object_id;
	const char *kernel_name;
	uint64_t kernel_object;
	uint32_t kernarg_size, kernarg_alignment, group_size, private_size, sgpr, vgpr, accum;
	int64_t entry;
	uint64_t address;
};

struct dispatch {
	uint64_t size;
	struct handle agent, queue;
	uint64_t kernel_id, dispatch_id;
	uint32_t private_size, group_size;
	uint32_t workgroup[3], grid[3];
	uint8_t reserved[56];
};

struct kernel_record {
	uint64_t size;
	int kind, operation;
	struct async_correlation correlation;
	uint64_t thread, start, end;
	struct dispatch dispatch;
};

struct copy_record {
	uint64_t size;
	int kind, operation;
	struct async_correlation correlation;
	uint64_t thread, start, end;
	struct handle to, from;
	uint64_t bytes, to_address, from_address;
};

struct api_record {
	uint64_t size;
	int kind;
	int32_t operation;
	struct correlation correlation;
	uint64_t start, end, thread;
};

_Static_assert(sizeof(struct dispatch) == 128, "as the SDK asserts");
_Static_assert(sizeof(struct kernel_record) == 184, "ROCm 6.3 on");

struct header {
	uint32_t category, kind;
	void *payload;
};

struct agent {
	uint64_t size;
	struct handle id;
	int type;
	uint32_t topology[20], gfx_target_version;
	uint8_t rest[216];
};

struct client {
	size_t size;
	const char *name;
	uint32_t handle;
};

struct configuration {
	size_t size;
	int (*initialize)(void (*)(struct client), void *);
	void (*finalize)(void *);
	void *data;
};

typedef void (*buffer_fn)(struct handle context, struct handle buffer, struct header **headers,
			  size_t cnt, void *data, uint64_t dropped);
typedef void (*callback_fn)(struct callback_record record, void *user, void *data);

EXPORT int rocprofiler_is_initialized(int *ret);
EXPORT int rocprofiler_create_context(struct handle *ret);
EXPORT int rocprofiler_start_context(struct handle context);
EXPORT int rocprofiler_stop_context(struct handle context);
EXPORT int rocprofiler_create_buffer(struct handle context, size_t size, size_t watermark,
				     int policy, buffer_fn callback, void *data,
				     struct handle *ret);
EXPORT int rocprofiler_flush_buffer(struct handle buffer);
EXPORT int rocprofiler_configure_buffer_tracing_service(struct handle context, int kind,
							const int32_t *operations, size_t cnt,
							struct handle buffer);
EXPORT int rocprofiler_configure_callback_tracing_service(struct handle context, int kind,
							  const int32_t *operations, size_t cnt,
							  callback_fn callback, void *data);
EXPORT int rocprofiler_iterate_buffer_tracing_kind_operations(int kind,
							      int (*callback)(int, int32_t, void *),
							      void *data);
EXPORT int rocprofiler_query_buffer_tracing_kind_operation_name(int kind, int32_t operation,
								const char **ret,
								uint64_t *ret_len);
EXPORT int rocprofiler_query_available_agents(int version,
					      int (*callback)(int, const void **, size_t, void *),
					      size_t size, void *data);
EXPORT int rocprofiler_get_timestamp(uint64_t *ret);

#define CONTEXT_MAX 8
#define OPERATION_MAX 64
#define AGENT_CPU 0x77001
#define AGENT_GPU 0x77002

static const char *const operations[] = {
	"hipApiName",	"hipMalloc",	  "hipLaunchKernel",
	"hipGetDevice", "hipMemcpyAsync", "hipStreamSynchronize"
};

static struct {
	int initialized; /* as rocprofiler_is_initialized() says */
	struct configuration *tool;
	bool active[CONTEXT_MAX];
	int64_t contexts, services, flushes, blocked;
	uint64_t kinds; /* of buffers */
	bool traced[OPERATION_MAX];
	uint64_t traced_context, called_context;
	callback_fn called;
	buffer_fn callback;
	size_t size;
	uint8_t *records;
	size_t used;
	struct header headers[65536];
	size_t cnt;
	int64_t larger, stranger, broken, refuse, dropped, untimed, version;
	char fault[128];
	int64_t faults;
} d = {
#ifdef DOUBLE_OLD
	.version = 600,
#else
	.version = 10000,
#endif
};

static void fault(const char *what)
{
	if (d.faults++ == 0)
		(void)snprintf(d.fault, sizeof(d.fault), "%s", what);
}

/* Everything that declares: within the tool's initialize() only. */
static bool locked(const char *what)
{
	if (d.initialized != -1)
		fault(what);
	return d.initialized != -1;
}

/* --- the SDK --- */

int rocprofiler_is_initialized(int *ret)
{
	*ret = d.initialized;
	return OK;
}

int rocprofiler_create_context(struct handle *ret)
{
	if (locked("create_context") || d.contexts + 1 >= CONTEXT_MAX)
		return LOCKED;
	if (ret->handle != 0)
		fault("create_context: the handle is not 0");
	ret->handle = (uint64_t)++d.contexts;
	return OK;
}

int rocprofiler_start_context(struct handle context)
{
	if (context.handle == 0 || context.handle > (uint64_t)d.contexts)
		return 2;
	if (d.refuse != 0)
		return (int)d.refuse;
	if (d.active[context.handle])
		fault("start_context: it is active");
	d.active[context.handle] = true;
	return OK;
}

int rocprofiler_stop_context(struct handle context)
{
	if (context.handle == 0 || context.handle > (uint64_t)d.contexts)
		return 2;
	d.active[context.handle] = false;
	return OK;
}

int rocprofiler_create_buffer(struct handle context, size_t size, size_t watermark, int policy,
			      buffer_fn callback, void *data, struct handle *ret)
{
	(void)context;
	(void)data;
	if (locked("create_buffer"))
		return LOCKED;
	if (watermark > size || policy != 2 || ret->handle != 0)
		fault("create_buffer: arguments");
	d.records = malloc(size);
	d.size = size;
	d.callback = callback;
	ret->handle = 4711;
	return OK;
}

static void *hand_over(void *arg)
{
	struct header **headers = arg;

	for (size_t i = 0; i < d.cnt; i++)
		headers[i] = &d.headers[i];
	d.callback((struct handle){ d.traced_context }, (struct handle){ 4711 }, headers, d.cnt,
		   NULL, (uint64_t)d.dropped);
	memset(d.records, 0xee, d.size); /* it is gone when the callback has returned */
	return NULL;
}

static void empty(void)
{
	static struct header *headers[65536];
	pthread_t thread;

	if (d.cnt > 0 && pthread_create(&thread, NULL, hand_over, headers) == 0)
		pthread_join(thread, NULL);
	d.cnt = 0;
	d.used = 0;
}

int rocprofiler_flush_buffer(struct handle buffer)
{
	if (buffer.handle != 4711)
		return 3;
	if (d.initialized == 2)
		fault("flush_buffer after the end");
	d.flushes++;
	empty();
	return OK;
}

int rocprofiler_configure_buffer_tracing_service(struct handle context, int kind,
						 const int32_t *ops, size_t cnt,
						 struct handle buffer)
{
	if (locked("configure_buffer_tracing_service"))
		return LOCKED;
	if (buffer.handle != 4711)
		fault("configure_buffer_tracing_service: the buffer");
	for (size_t i = 0; i < cnt; i++)
		d.traced[ops[i]] = true;
	d.kinds |= 1u << kind;
	d.traced_context = context.handle;
	d.services++;
	return OK;
}

int rocprofiler_configure_callback_tracing_service(struct handle context, int kind,
						   const int32_t *ops, size_t cnt,
						   callback_fn callback, void *data)
{
	(void)data;
	if (locked("configure_callback_tracing_service"))
		return LOCKED;
	if (kind != CODE_OBJECT || cnt != 1 || ops[0] != 2)
		fault("configure_callback_tracing_service: arguments");
	d.called = callback;
	d.called_context = context.handle;
	d.services++;
	return OK;
}

int rocprofiler_iterate_buffer_tracing_kind_operations(int kind,
						       int (*callback)(int, int32_t, void *),
						       void *data)
{
	if (kind != HIP_API)
		return OK;
	for (int32_t i = 0; i < (int32_t)(sizeof(operations) / sizeof(operations[0])); i++)
		(void)callback(kind, i, data);
	return OK;
}

int rocprofiler_query_buffer_tracing_kind_operation_name(int kind, int32_t operation,
							 const char **ret, uint64_t *ret_len)
{
	if (kind != HIP_API)
		return NOT_FOUND;
	*ret = operations[operation];
	*ret_len = strlen(*ret);
	return OK;
}

int rocprofiler_query_available_agents(int version,
				       int (*callback)(int, const void **, size_t, void *),
				       size_t size, void *data)
{
	static const struct agent agents[] = {
		{ .size = sizeof(agents[0]), .id = { AGENT_CPU }, .type = 1 },
		{ .size = sizeof(agents[0]),
		  .id = { AGENT_GPU },
		  .type = 2,
		  .gfx_target_version = 90010 },
	};
	const void *list[] = { &agents[0], &agents[1] };

	if (version != 1 || size > sizeof(agents[0]))
		return INVALID;
	return callback(version, list, 2, data);
}

/* A clock of its own, an hour ahead of CLOCK_MONOTONIC. */
int rocprofiler_get_timestamp(uint64_t *ret)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	*ret = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 3600u * 1000000000u;
	return OK;
}

/* --- the job --- */

void double_begin(void *configure)
{
	struct configuration *(*function)(uint32_t, const char *, uint32_t, struct client *);
	struct client client = { .size = sizeof(client) };

	memcpy(&function, &configure, sizeof(function));
	d.initialized = -1;
	d.tool = function((uint32_t)d.version, "double", 0, &client);
	if (d.tool != NULL && (d.tool->size < sizeof(*d.tool) || client.name == NULL))
		fault("rocprofiler_configure");
	if (d.tool != NULL && d.tool->initialize(NULL, d.tool->data) != 0)
		d.tool = NULL;
	d.initialized = 1;
}

void double_end(void)
{
	if (d.tool != NULL && d.tool->finalize != NULL)
		d.tool->finalize(d.tool->data);
	d.initialized = 2;
}

void double_symbol(uint64_t kernel, const char *name)
{
	char text[2048];
	struct symbol symbol = { .size = sizeof(symbol), .kernel_id = kernel, .kernel_name = text };
	struct callback_record record = {
		.kind = CODE_OBJECT, .operation = 2, .phase = 1, .payload = &symbol
	};

	if (d.called == NULL || !d.active[d.called_context])
		return;
	(void)snprintf(text, sizeof(text), "%s", name);
	d.called(record, NULL, NULL);
	memset(text, 'x', sizeof(text) - 1);
	record.phase = 2; /* unloaded */
	d.called(record, NULL, NULL);
}

static void put(uint32_t category, uint32_t kind, const void *record, size_t size, size_t stated)
{
	size_t whole = (size + (size_t)d.larger + 7) & ~(size_t)7;
	uint64_t longer = stated + (uint64_t)d.larger;

	if (d.used + whole > d.size || d.cnt == 65536) {
		d.blocked++;
		empty();
	}
	memset(d.records + d.used, 0xaa, whole);
	memcpy(d.records + d.used, record, size);
	memcpy(d.records + d.used, &longer, sizeof(longer));
	d.headers[d.cnt++] = (struct header){ category, kind, d.records + d.used };
	d.used += whole;
}

static void record(uint32_t kind, const void *data, size_t size)
{
	uint32_t strange[16] = { sizeof(strange), 0, 77 };

	if (d.traced_context == 0 || !d.active[d.traced_context] || (d.kinds >> kind & 1u) == 0)
		return;
	if (d.stranger != 0) {
		put(1, 77, strange, sizeof(strange), sizeof(strange));
		put(3, kind, strange, sizeof(strange), sizeof(strange));
	}
	put(1, kind, data, size, size);
	if (d.broken != 0)
		put(1, kind, data, size, 32);
}

static uint64_t now(void)
{
	uint64_t ret;

	(void)rocprofiler_get_timestamp(&ret);
	return ret;
}

void double_kernel(uint64_t kernel, uint64_t queue, uint64_t correlation)
{
	struct kernel_record r = { .size = sizeof(r),
				   .kind = KERNEL,
				   .operation = 2,
				   .correlation = { .internal = correlation },
				   .thread = (uint64_t)syscall(SYS_gettid),
				   .start = d.untimed != 0 ? 0 : now(),
				   .dispatch = { .size = 72,
						 .agent = { AGENT_GPU },
						 .queue = { queue },
						 .kernel_id = kernel,
						 .workgroup = { 256, 1, 1 },
						 .grid = { 1024, 2, 1 } } };

	r.end = r.start == 0 ? 0 : r.start + 5000;
	record(KERNEL, &r, sizeof(r));
}

void double_copy(int operation, uint64_t bytes, uint64_t correlation)
{
	bool down = operation == 3;
	struct copy_record r = { .size = sizeof(r),
				 .kind = COPY,
				 .operation = operation,
				 .correlation = { .internal = correlation },
				 .start = now(),
				 .to = { down ? AGENT_CPU : AGENT_GPU },
				 .from = { down ? AGENT_GPU : AGENT_CPU },
				 .bytes = bytes };

	r.end = r.start + 3000;
	record(COPY, &r, sizeof(r));
}

void double_call(const char *name, uint64_t correlation)
{
	struct api_record r = { .size = sizeof(r),
				.kind = HIP_API,
				.correlation = { .internal = correlation },
				.start = now(),
				.thread = (uint64_t)syscall(SYS_gettid) };

	r.end = r.start + 700;
	while (r.operation < OPERATION_MAX && strcmp(operations[r.operation], name) != 0)
		r.operation++;
	if (d.traced[r.operation])
		record(HIP_API, &r, sizeof(r));
}

/* --- the test --- */

void double_set(const char *key, int64_t value)
{
	const struct {
		const char *key;
		int64_t *value;
	} keys[] = {
		{ "larger", &d.larger },   { "stranger", &d.stranger }, { "broken", &d.broken },
		{ "refuse", &d.refuse },   { "dropped", &d.dropped },	{ "untimed", &d.untimed },
		{ "version", &d.version },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].key, key) == 0) {
			*keys[i].value = value;
			return;
		}
	}
	fault(key);
}

int64_t double_count(const char *key)
{
	const struct {
		const char *key;
		int64_t value;
	} keys[] = {
		{ "active", 0 },	  { "contexts", d.contexts }, { "services", d.services },
		{ "flushes", d.flushes }, { "blocked", d.blocked },   { "faults", d.faults },
	};
	int64_t active = 0;

	for (size_t i = 0; i < CONTEXT_MAX; i++)
		active += d.active[i];
	if (strcmp(key, "active") == 0)
		return active;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].key, key) == 0)
			return keys[i].value;
	}
	return -1;
}

const char *double_fault(void)
{
	return d.fault;
}
