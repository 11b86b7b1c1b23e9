/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity records, of what libcuda's double does; see double.h. SONAME
 * libcupti.so.13. Records are laid out as the real library does, from its published
 * interface; a worker thread hands full buffers over. Each thread has a buffer of its own
 * if that is asked for, until a flush takes it.
 *
 * double_set():
 *	version		what cuptiGetVersion() says
 *	kernel		5 to 13: the version of kernels' records, which differ in length
 *	busy		1: another tool is there ("Nsight Systems"); 2: it comes in enable()
 *	refuse		result of every cuptiActivityEnable()
 *	untimed		each so many-th kernel has no times
 *	deaf		1: callbacks of the driver's calls never come
 *	slow		1: a thread of the job's gets to detach first, and takes until this is 0
 *	lag		nanoseconds that every cuptiActivityFlushAll() takes longer
 *	fatal		1: a fatal error happens now; names are poisoned when its callback returns
 *	repeat		each kernel is recorded so many times
 * double_count(): kernels, buffers, finalized, attached, enabled (kinds), calls (that are
 * recorded), sites (calls of the driver with callbacks), failing (a fatal error has begun),
 * callback_ns (CPU of the buffers' callbacks), faults.
 */
#include "double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT DOUBLE_EXPORT

enum { OK, INVALID = 1, MAX_LIMIT = 12, INVALID_KIND = 21, BUSY = 39 };
enum { MEMCPY = 1, MEMSET = 2, KERNEL = 3, CONCURRENT = 10, OVERHEAD = 17, SYNC = 38 };
enum { DRIVER = 4, RUNTIME = 5 };

typedef void (*callback_fn)(void *data, uint32_t domain, uint32_t call, const void *info);
typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *max);
typedef void (*complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			    size_t valid);

struct params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

/* Names of the real library, which no header of ours declares. */
EXPORT uint32_t cuptiGetVersion(uint32_t *ret);
EXPORT uint32_t cuptiSubscribe(void **ret, callback_fn callback, void *data);
EXPORT uint32_t cuptiSubscribe_v2(void **ret, callback_fn callback, void *data, struct params *p);
EXPORT uint32_t cuptiUnsubscribe(void *subscriber);
EXPORT uint32_t cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t call);
EXPORT uint32_t cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete);
EXPORT uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
EXPORT uint32_t cuptiActivityEnable(int kind);
EXPORT uint32_t cuptiActivityDisable(int kind);
EXPORT uint32_t cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t on);
EXPORT uint32_t cuptiActivityEnableDriverApi(uint32_t call, uint8_t on);
EXPORT uint32_t cuptiActivityEnableAllSyncRecords(uint8_t on);
EXPORT uint32_t cuptiActivityFlushAll(uint32_t flags);
EXPORT uint32_t cuptiActivityFlushPeriod(uint32_t ms);
EXPORT uint32_t cuptiActivitySetAttribute(int attribute, size_t *size, void *value);
EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret);
EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
EXPORT uint32_t cuptiSetThreadIdType(int type);
EXPORT uint32_t cuptiFinalize(void);

#define CALL_CNT 1024
#define NAME_CNT 256
#define QUEUE_CNT 256
#define THREAD_CNT 2048

struct buffer {
	uint8_t *at;
	size_t size, used;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool thread;
	_Atomic(callback_fn) callback;
	_Atomic bool attached, state_on, driver_on, clock_set, zeroed;
	_Atomic bool sites[CALL_CNT]; /* calls of the driver with callbacks, but for its version */
	int (*disturb_captures)(void);
	uint64_t kinds;
	uint8_t runtime[CALL_CNT], driver[CALL_CNT];
	request_fn request;
	complete_fn complete;
	struct buffer filling[THREAD_CNT]; /* [0]: of all threads together */
	size_t thread_cnt;
	_Atomic bool per_thread;
	struct buffer queue[QUEUE_CNT];
	size_t queued, handed;
	char *names[NAME_CNT]; /* poisoned by cuptiFinalize() */
	size_t name_cnt;
	size_t dropped, kernel_cnt, buffer_cnt, finalize_cnt;
	int64_t version, kernel, busy, refuse, untimed, deaf, slow, lag, repeat;
	_Atomic bool finalizing, failing;
	_Atomic int64_t callback_ns;
	char fault[128];
	int64_t fault_cnt;
} c = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.version = 130001,
	.kernel = 10,
	.repeat = 1 };

static __thread size_t own;   /* place of the thread's buffer; 0: none yet */
static __thread bool inside;  /* of a buffer's callback, on this thread */
static __thread bool in_exit; /* of a call's callback, at its exit */

static void fault(const char *what)
{
	if (c.fault_cnt++ == 0)
		(void)snprintf(c.fault, sizeof(c.fault), "%s", what);
}

/* Every entry that may not be used from within a buffer's callback. */
static void enter(const char *name)
{
	if (inside)
		fault(name);
}

/* What the real one does to the GPU in a call. Returns how many captures go on. */
static int disturb_captures(void)
{
	return c.disturb_captures != NULL ? c.disturb_captures() : 0;
}

/* --- buffers --- */

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void call_complete(const struct buffer *full)
{
	int64_t begin_ns = cpu_ns();

	inside = true;
	c.complete(NULL, 0, full->at, full->size, full->used);
	inside = false;
	c.callback_ns += cpu_ns() - begin_ns;
}

static void call_request(struct buffer *buffer)
{
	int64_t begin_ns = cpu_ns();
	size_t max = 0;

	inside = true;
	c.request(&buffer->at, &buffer->size, &max);
	inside = false;
	c.callback_ns += cpu_ns() - begin_ns;
}

static void *hand_over(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&c.lock);
	for (;;) {
		struct buffer full;

		while (c.handed == c.queued)
			pthread_cond_wait(&c.changed, &c.lock);
		full = c.queue[c.handed % QUEUE_CNT];
		pthread_mutex_unlock(&c.lock);
		call_complete(&full);
		pthread_mutex_lock(&c.lock);
		c.handed++;
		pthread_cond_broadcast(&c.changed);
	}
	return NULL;
}

/* With the lock. */
static void queue_buffer(struct buffer *buffer)
{
	pthread_t thread;

	if (!c.thread)
		c.thread = pthread_create(&thread, NULL, hand_over, NULL) == 0;
	while (c.queued - c.handed >= QUEUE_CNT)
		pthread_cond_wait(&c.changed, &c.lock);
	c.queue[c.queued++ % QUEUE_CNT] = *buffer;
	buffer->at = NULL;
	pthread_cond_broadcast(&c.changed);
}

static void check_buffer(const struct buffer *buffer)
{
	if (((uintptr_t)buffer->at & 7) != 0)
		fault("a buffer is not aligned");
	for (size_t i = 0; c.zeroed && i < 4096 && i < buffer->size; i++) {
		if (buffer->at[i] != 0)
			fault("a buffer is not zeroed");
	}
	for (size_t i = 0; i <= c.thread_cnt; i++) {
		const struct buffer *other = &c.filling[i];

		if (other != buffer && other->at != NULL && other->at < buffer->at + buffer->size &&
		    buffer->at < other->at + other->size)
			fault("two threads have one buffer");
	}
}

static bool get_buffer(struct buffer *buffer)
{
	call_request(buffer);
	buffer->used = 0;
	c.buffer_cnt++;
	if (buffer->at == NULL && c.version < 27)
		fault("a buffer was refused by a version that can't stand it");
	if (buffer->at == NULL)
		return false;
	check_buffer(buffer);
	return true;
}

static struct buffer *own_buffer(void)
{
	if (!c.per_thread)
		return &c.filling[0];
	if (own == 0 && c.thread_cnt + 1 == THREAD_CNT)
		fault("more threads than a test should have");
	else if (own == 0)
		own = ++c.thread_cnt;
	return &c.filling[own];
}

/* Room for a record, with the lock; NULL: it is dropped. */
static void *room(size_t bytes)
{
	struct buffer *buffer = own_buffer();

	if (buffer->at != NULL && buffer->size - buffer->used < bytes)
		queue_buffer(buffer);
	if (buffer->at == NULL && !get_buffer(buffer)) {
		c.dropped++;
		return NULL;
	}
	buffer->used += bytes;
	return buffer->at + buffer->used - bytes;
}

/* --- records --- */

static void put32(uint8_t *at, size_t off, uint32_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void put64(uint8_t *at, size_t off, uint64_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static bool on(int kind)
{
	return (c.kinds >> kind & 1) != 0 && c.request != NULL;
}

/* CUPTI's own copy of a name: one pointer for all records of a kernel. */
static const char *own_name(const char *name)
{
	for (size_t i = 0; i < c.name_cnt; i++) {
		if (strcmp(c.names[i], name) == 0)
			return c.names[i];
	}
	if (c.name_cnt == NAME_CNT)
		return c.names[0];
	c.names[c.name_cnt] = strdup(name);
	return c.names[c.name_cnt++];
}

static size_t kernel_bytes(void)
{
	static const size_t bytes[] = { 160, 168, 176, 200, 208, 216, 224, 232, 248 };

	return bytes[c.kernel - 5];
}

static void put_kernel(const struct double_kernel *kernel)
{
	uint8_t *at = room(kernel_bytes());
	bool untimed = c.untimed > 0 && (int64_t)(++c.kernel_cnt % (size_t)c.untimed) == 0;
	const char *name = own_name(kernel->name);

	c.kernel_cnt += c.untimed == 0;
	if (at == NULL)
		return;
	put32(at, 0, CONCURRENT);
	put64(at, 16, untimed ? 0 : (uint64_t)kernel->start_ns);
	put64(at, 24, untimed ? 0 : (uint64_t)kernel->end_ns);
	put32(at, 44, 1);
	put32(at, 48, kernel->stream);
	for (size_t i = 0; i < 6; i++)
		put32(at, 52 + 4 * i, i == 3 ? kernel->threads : 1);
	put32(at, 92, kernel->correlation);
	memcpy(at + 104, &name, sizeof(name));
	put64(at, 144, kernel->graph_node);
}

static void on_kernel(const struct double_kernel *kernel)
{
	pthread_mutex_lock(&c.lock);
	for (int64_t i = 0; i < c.repeat && on(CONCURRENT); i++)
		put_kernel(kernel);
	pthread_mutex_unlock(&c.lock);
}

static void on_copy(const struct double_copy *copy)
{
	int kind = copy->kind == 0 ? MEMSET : MEMCPY;
	uint8_t *at;

	pthread_mutex_lock(&c.lock);
	at = on(kind) ? room(kind == MEMSET ? 88 : 96) : NULL;
	if (at != NULL) {
		put32(at, 0, (uint32_t)kind);
		if (kind == MEMCPY) {
			at[4] = copy->kind;
			at[5] = copy->from;
			at[6] = copy->to;
		} else {
			at[50] = 3; /* of the device */
		}
		put64(at, 8, copy->bytes);
		put64(at, 16, (uint64_t)copy->start_ns);
		put64(at, 24, (uint64_t)copy->end_ns);
		put32(at, 36, 1);
		put32(at, 40, copy->stream);
		put32(at, 44, copy->correlation);
	}
	pthread_mutex_unlock(&c.lock);
}

static void on_call(const struct double_call *call)
{
	bool runtime = call->domain == 2;
	int kind = runtime ? RUNTIME : DRIVER;
	uint8_t *at;

	pthread_mutex_lock(&c.lock);
	at = c.request != NULL &&
			     ((runtime ? c.runtime : c.driver)[call->call % CALL_CNT] || on(kind))
		     ? room(40)
		     : NULL;
	if (at != NULL) {
		put32(at, 0, (uint32_t)kind);
		put32(at, 4, call->call);
		put64(at, 8, (uint64_t)call->start_ns);
		put64(at, 16, (uint64_t)call->end_ns);
		put32(at, 28, call->tid);
		put32(at, 32, call->correlation);
	}
	pthread_mutex_unlock(&c.lock);
}

static void on_sync(uint32_t stream, int64_t start_ns, int64_t end_ns, uint32_t correlation)
{
	uint8_t *at;

	pthread_mutex_lock(&c.lock);
	at = on(SYNC) ? room(56) : NULL;
	if (at != NULL) {
		put32(at, 0, SYNC);
		put32(at, 4, 3); /* of a stream */
		put64(at, 8, (uint64_t)start_ns);
		put64(at, 16, (uint64_t)end_ns);
		put32(at, 24, correlation);
		put32(at, 28, 1);
		put32(at, 32, stream);
	}
	pthread_mutex_unlock(&c.lock);
}

/* What a callback for a call is given: as long as the real one. */
struct site {
	uint64_t exit;
	const void *name, *arguments;
	const int *result;
	uint64_t rest[12];
};

static void on_site(uint32_t call, int exit, int result)
{
	struct site site = { .exit = (uint64_t)exit, .result = exit ? &result : NULL };
	callback_fn callback = atomic_load(&c.callback);

	if (c.deaf || callback == NULL || !(call == 2 ? c.driver_on : c.sites[call]))
		return;
	in_exit = exit;
	callback(NULL, 1, call, &site);
	in_exit = false;
}

static const struct double_watcher watcher = { on_kernel, on_copy, on_call, on_sync, on_site };

static size_t record_bytes(uint32_t kind)
{
	switch (kind) {
	case CONCURRENT:
		return kernel_bytes();
	case MEMCPY:
		return 96;
	case MEMSET:
		return 88;
	case RUNTIME:
	case DRIVER:
		return 40;
	case SYNC:
		return 56;
	default:
		return 0;
	}
}

uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record == NULL ? buffer : *record;
	uint32_t kind;

	enter("cuptiActivityGetNextRecord in a buffer's callback");
	if (*record != NULL) {
		memcpy(&kind, at, sizeof(kind));
		at += record_bytes(kind);
	}
	if (at >= buffer + valid)
		return MAX_LIMIT;
	memcpy(&kind, at, sizeof(kind));
	if (record_bytes(kind) == 0)
		return INVALID_KIND;
	*record = at;
	return OK;
}

/* --- attaching --- */

static uint32_t subscribe(void **ret, callback_fn callback)
{
	void (*watch)(const struct double_watcher *) = NULL;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	enter("cuptiSubscribe in a buffer's callback");
	if (c.attached)
		return BUSY;
	if (cuda != NULL)
		*(void **)&watch = dlsym(cuda, "double_watch");
	if (cuda != NULL)
		*(void **)&c.disturb_captures = dlsym(cuda, "double_disturb_captures");
	disturb_captures();
	c.attached = true;
	c.callback = callback;
	*ret = &c;
	if (watch != NULL)
		watch(&watcher);
	return OK;
}

uint32_t cuptiSubscribe(void **ret, callback_fn callback, void *data)
{
	(void)data;
	return c.busy == 1 ? BUSY : subscribe(ret, callback);
}

uint32_t cuptiSubscribe_v2(void **ret, callback_fn callback, void *data, struct params *p)
{
	(void)data;
	if (p->size != sizeof(*p) || p->old_size < 64)
		fault("parameters of a wrong size");
	if (c.busy != 1)
		return subscribe(ret, callback);
	(void)snprintf(p->old_name, p->old_size, "Nsight Systems");
	return BUSY;
}

uint32_t cuptiUnsubscribe(void *subscriber)
{
	enter("cuptiUnsubscribe in a buffer's callback");
	if (subscriber != &c || !c.attached)
		fault("cuptiUnsubscribe without a subscriber");
	c.attached = c.driver_on = c.state_on = false;
	for (size_t i = 0; i < CALL_CNT; i++)
		c.sites[i] = false;
	return OK;
}

static bool is_slow(void)
{
	return __atomic_load_n(&c.slow, __ATOMIC_ACQUIRE) != 0;
}

static void set_driver_on(bool on)
{
	c.driver_on = on;
	while (on && is_slow() && !c.finalizing)
		sched_yield();
}

uint32_t cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t call)
{
	enter("cuptiEnableCallback in a buffer's callback");
	if (subscriber != &c)
		return INVALID;
	if (!c.attached)
		fault("a callback of a subscriber that is gone");
	if (domain == 1 && call == 2)
		set_driver_on(enable != 0);
	else if (domain == 6 && call == 1)
		c.state_on = enable != 0;
	else if (domain == 1 && (call == 497 || call == 539))
		c.sites[call] = enable != 0;
	else if (domain != 1)
		fault("a callback that nobody needs");
	else
		return INVALID;
	return OK;
}

uint32_t cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete)
{
	enter("cuptiActivityRegisterCallbacks in a buffer's callback");
	c.request = request;
	c.complete = complete;
	return OK;
}

uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
	struct timespec t;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	if (llabs((int64_t)clock() - ns) > 1000000000)
		fault("the clock is not CLOCK_MONOTONIC");
	if (c.kinds != 0)
		fault("the clock comes after kinds");
	c.clock_set = true;
	return OK;
}

uint32_t cuptiActivityEnable(int kind)
{
	enter("cuptiActivityEnable in a buffer's callback");
	if (kind == KERNEL)
		fault("kernels would be serialized");
	if (c.request == NULL)
		fault("a kind before the buffers");
	if (c.busy == 2)
		return BUSY;
	if (c.refuse != 0)
		return (uint32_t)c.refuse;
	disturb_captures();
	c.kinds |= (uint64_t)1 << kind;
	return OK;
}

uint32_t cuptiActivityDisable(int kind)
{
	disturb_captures();
	c.kinds &= ~((uint64_t)1 << kind);
	return OK;
}

uint32_t cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t enable)
{
	c.runtime[call % CALL_CNT] = enable;
	return OK;
}

uint32_t cuptiActivityEnableDriverApi(uint32_t call, uint8_t enable)
{
	c.driver[call % CALL_CNT] = enable;
	return OK;
}

uint32_t cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
	if (enable)
		fault("all records of waits are many");
	return OK;
}

uint32_t cuptiActivityFlushAll(uint32_t flags)
{
	struct timespec lag = { .tv_nsec = c.lag };

	enter("cuptiActivityFlushAll in a buffer's callback");
	nanosleep(&lag, NULL);
	disturb_captures();
	pthread_mutex_lock(&c.lock);
	for (size_t i = 0; flags != 0 && i <= c.thread_cnt; i++) {
		if (c.filling[i].at != NULL)
			queue_buffer(&c.filling[i]);
	}
	while (c.handed != c.queued)
		pthread_cond_wait(&c.changed, &c.lock);
	pthread_mutex_unlock(&c.lock);
	return OK;
}

uint32_t cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return OK;
}

uint32_t cuptiActivitySetAttribute(int attribute, size_t *size, void *value)
{
	if (*size == 0 || *size > 8)
		fault("an attribute of a wrong size");
	if (attribute == 5)
		c.zeroed = *(uint8_t *)value != 0;
	if (attribute == 9)
		c.per_thread = *(uint8_t *)value != 0;
	if (attribute == 9 && c.request != NULL && c.finalize_cnt == 0 && !c.attached)
		fault("buffers per thread come after the buffers");
	return OK;
}

uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret)
{
	(void)context;
	(void)stream;
	*ret = c.dropped;
	c.dropped = 0;
	return OK;
}

uint32_t cuptiSetThreadIdType(int type)
{
	if (type != 1)
		fault("threads are not named by their system's ids");
	return OK;
}

uint32_t cuptiGetVersion(uint32_t *ret)
{
	*ret = (uint32_t)c.version;
	return OK;
}

static void forget_all(void)
{
	pthread_mutex_lock(&c.lock);
	c.kinds = 0;
	memset(c.runtime, 0, sizeof(c.runtime));
	memset(c.driver, 0, sizeof(c.driver));
	for (size_t i = 0; i < c.name_cnt; i++) {
		memset(c.names[i], '?', strlen(c.names[i]));
		c.names[i] = NULL; /* leaked: a late reader finds the poison */
	}
	c.name_cnt = 0;
	memset(c.filling, 0, sizeof(c.filling));
	c.clock_set = c.zeroed = c.driver_on = false;
	c.request = NULL;
	c.attached = false;
	pthread_mutex_unlock(&c.lock);
}

uint32_t cuptiFinalize(void)
{
	enter("cuptiFinalize in a buffer's callback");
	if (!in_exit)
		fault("cuptiFinalize outside of a call's exit");
	if (c.attached)
		fault("cuptiFinalize with a subscriber");
	if (disturb_captures() > 0)
		fault("cuptiFinalize in the midst of a capture");
	c.finalizing = true;
	while (is_slow())
		sched_yield();
	c.finalizing = false;
	forget_all();
	c.finalize_cnt++;
	return OK;
}

/* --- the test's side --- */

static void fail_fatally(void)
{
	struct site site = { 0 };
	callback_fn callback = atomic_load(&c.callback);

	c.failing = true;
	if (c.state_on && callback != NULL)
		callback(NULL, 6, 1, &site);
	forget_all();
}

void double_set(const char *key, int64_t value)
{
	struct {
		const char *key;
		int64_t *at;
	} const keys[] = {
		{ "version", &c.version }, { "kernel", &c.kernel },   { "busy", &c.busy },
		{ "refuse", &c.refuse },   { "untimed", &c.untimed }, { "deaf", &c.deaf },
		{ "repeat", &c.repeat },   { "slow", &c.slow },	      { "lag", &c.lag },
	};

	if (strcmp(key, "fatal") == 0)
		fail_fatally();
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i].key) == 0)
			__atomic_store_n(keys[i].at, value, __ATOMIC_RELEASE);
	}
}

static int64_t sites_on(void)
{
	int64_t cnt = c.driver_on;

	for (size_t i = 0; i < CALL_CNT; i++)
		cnt += c.sites[i];
	return cnt;
}

static int64_t calls_on(void)
{
	int64_t cnt = 0;

	for (size_t i = 0; i < CALL_CNT; i++)
		cnt += c.runtime[i] + c.driver[i];
	return cnt;
}

int64_t double_count(const char *key)
{
	if (strcmp(key, "kernels") == 0)
		return (int64_t)c.kernel_cnt;
	if (strcmp(key, "buffers") == 0)
		return (int64_t)c.buffer_cnt;
	if (strcmp(key, "finalized") == 0)
		return (int64_t)c.finalize_cnt;
	if (strcmp(key, "attached") == 0)
		return c.attached;
	if (strcmp(key, "enabled") == 0)
		return __builtin_popcountll(c.kinds);
	if (strcmp(key, "calls") == 0)
		return calls_on();
	if (strcmp(key, "callback_ns") == 0)
		return c.callback_ns;
	if (strcmp(key, "sites") == 0)
		return sites_on();
	if (strcmp(key, "failing") == 0)
		return c.failing;
	return c.fault_cnt;
}

const char *double_fault(void)
{
	return c.fault;
}
