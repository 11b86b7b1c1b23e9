/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity records, of what libcuda's double does; see double.h. SONAME
 * libcupti.so.13. Buffers and records are in libcupti_records.c.
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
#include "libcupti_parts.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

/* Names of the real library, declared by no header of PerfTracker. */
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
EXPORT uint32_t cuptiActivityFlushPeriod(uint32_t ms);
EXPORT uint32_t cuptiActivitySetAttribute(int attribute, size_t *size, void *value);
EXPORT uint32_t cuptiSetThreadIdType(int type);
EXPORT uint32_t cuptiFinalize(void);

struct cupti_double cupti = { .lock = PTHREAD_MUTEX_INITIALIZER,
			      .changed = PTHREAD_COND_INITIALIZER,
			      .version = 130001,
			      .kernel = 10,
			      .repeat = 1 };

static __thread bool in_exit; /* of a call's callback, at its exit */

void cupti_fault(const char *what)
{
	if (cupti.fault_cnt++ == 0)
		(void)snprintf(cupti.fault, sizeof(cupti.fault), "%s", what);
}

int cupti_disturb_captures(void)
{
	return cupti.disturb_captures != NULL ? cupti.disturb_captures() : 0;
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
	callback_fn callback = atomic_load(&cupti.callback);

	if (cupti.deaf || callback == NULL || !(call == 2 ? cupti.driver_on : cupti.sites[call]))
		return;
	in_exit = exit;
	callback(NULL, 1, call, &site);
	in_exit = false;
}

static const struct double_watcher watcher = { cupti_on_kernel, cupti_on_copy, cupti_on_call,
					       cupti_on_sync, on_site };

/* --- attaching --- */

static uint32_t subscribe(void **ret, callback_fn callback)
{
	void (*watch)(const struct double_watcher *) = NULL;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	cupti_enter("cuptiSubscribe in a buffer's callback");
	if (cupti.attached)
		return BUSY;
	if (cuda != NULL)
		*(void **)&watch = dlsym(cuda, "double_watch");
	if (cuda != NULL)
		*(void **)&cupti.disturb_captures = dlsym(cuda, "double_disturb_captures");
	cupti_disturb_captures();
	cupti.attached = true;
	cupti.callback = callback;
	*ret = &cupti;
	if (watch != NULL)
		watch(&watcher);
	return OK;
}

uint32_t cuptiSubscribe(void **ret, callback_fn callback, void *data)
{
	(void)data;
	return cupti.busy == 1 ? BUSY : subscribe(ret, callback);
}

uint32_t cuptiSubscribe_v2(void **ret, callback_fn callback, void *data, struct params *p)
{
	(void)data;
	if (p->size != sizeof(*p) || p->old_size < 64)
		cupti_fault("parameters of a wrong size");
	if (cupti.busy != 1)
		return subscribe(ret, callback);
	(void)snprintf(p->old_name, p->old_size, "Nsight Systems");
	return BUSY;
}

uint32_t cuptiUnsubscribe(void *subscriber)
{
	cupti_enter("cuptiUnsubscribe in a buffer's callback");
	if (subscriber != &cupti || !cupti.attached)
		cupti_fault("cuptiUnsubscribe without a subscriber");
	cupti.attached = cupti.driver_on = cupti.state_on = false;
	for (size_t i = 0; i < CALL_CNT; i++)
		cupti.sites[i] = false;
	return OK;
}

static bool is_slow(void)
{
	return __atomic_load_n(&cupti.slow, __ATOMIC_ACQUIRE) != 0;
}

static void set_driver_on(bool on)
{
	cupti.driver_on = on;
	while (on && is_slow() && !cupti.finalizing)
		sched_yield();
}

uint32_t cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t call)
{
	cupti_enter("cuptiEnableCallback in a buffer's callback");
	if (subscriber != &cupti)
		return INVALID;
	if (!cupti.attached)
		cupti_fault("a callback of a subscriber that is gone");
	if (domain == 1 && call == 2)
		set_driver_on(enable != 0);
	else if (domain == 6 && call == 1)
		cupti.state_on = enable != 0;
	else if (domain == 1 && (call == 497 || call == 539))
		cupti.sites[call] = enable != 0;
	else if (domain != 1)
		cupti_fault("a callback without a use");
	else
		return INVALID;
	return OK;
}

uint32_t cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete)
{
	cupti_enter("cuptiActivityRegisterCallbacks in a buffer's callback");
	cupti.request = request;
	cupti.complete = complete;
	return OK;
}

uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
	struct timespec t;
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	if (llabs((int64_t)clock() - ns) > 1000000000)
		cupti_fault("the clock is not CLOCK_MONOTONIC");
	if (cupti.kinds != 0)
		cupti_fault("the clock comes after kinds");
	cupti.clock_set = true;
	return OK;
}

/* The kinds of calls begin and end with all of them. */
static void choose_all(int kind, uint8_t on)
{
	if (kind == RUNTIME)
		memset(cupti.runtime + 1, on, sizeof(cupti.runtime) - 1);
	if (kind == DRIVER)
		memset(cupti.driver + 1, on, sizeof(cupti.driver) - 1);
}

uint32_t cuptiActivityEnable(int kind)
{
	cupti_enter("cuptiActivityEnable in a buffer's callback");
	if (kind == KERNEL)
		cupti_fault("kernels would be serialized");
	if (cupti.request == NULL)
		cupti_fault("a kind before the buffers");
	if (cupti.busy == 2)
		return BUSY;
	if (cupti.refuse != 0)
		return (uint32_t)cupti.refuse;
	cupti_disturb_captures();
	cupti.kinds |= (uint64_t)1 << kind;
	choose_all(kind, 1);
	return OK;
}

uint32_t cuptiActivityDisable(int kind)
{
	cupti_disturb_captures();
	cupti.kinds &= ~((uint64_t)1 << kind);
	choose_all(kind, 0);
	return OK;
}

uint32_t cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t enable)
{
	cupti.runtime[call % CALL_CNT] = enable;
	return OK;
}

uint32_t cuptiActivityEnableDriverApi(uint32_t call, uint8_t enable)
{
	cupti.driver[call % CALL_CNT] = enable;
	return OK;
}

uint32_t cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
	if (enable)
		cupti_fault("all records of waits are many");
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
		cupti_fault("an attribute of a wrong size");
	if (attribute == 5)
		cupti.zeroed = *(uint8_t *)value != 0;
	if (attribute == 9)
		cupti.per_thread = *(uint8_t *)value != 0;
	if (attribute == 9 && cupti.request != NULL && cupti.finalize_cnt == 0 && !cupti.attached)
		cupti_fault("buffers per thread come after the buffers");
	return OK;
}

uint32_t cuptiSetThreadIdType(int type)
{
	if (type != 1)
		cupti_fault("threads are not named by their system's ids");
	return OK;
}

uint32_t cuptiGetVersion(uint32_t *ret)
{
	*ret = (uint32_t)cupti.version;
	return OK;
}

static void forget_all(void)
{
	pthread_mutex_lock(&cupti.lock);
	cupti.kinds = 0;
	memset(cupti.runtime, 0, sizeof(cupti.runtime));
	memset(cupti.driver, 0, sizeof(cupti.driver));
	for (size_t i = 0; i < cupti.name_cnt; i++) {
		memset(cupti.names[i], '?', strlen(cupti.names[i]));
		cupti.names[i] = NULL; /* leaked: a late reader finds the poison */
	}
	cupti.name_cnt = 0;
	memset(cupti.filling, 0, sizeof(cupti.filling));
	cupti.clock_set = cupti.zeroed = cupti.driver_on = false;
	cupti.request = NULL;
	cupti.attached = false;
	pthread_mutex_unlock(&cupti.lock);
}

uint32_t cuptiFinalize(void)
{
	cupti_enter("cuptiFinalize in a buffer's callback");
	if (!in_exit)
		cupti_fault("cuptiFinalize outside of a call's exit");
	if (cupti.attached)
		cupti_fault("cuptiFinalize with a subscriber");
	if (cupti_disturb_captures() > 0)
		cupti_fault("cuptiFinalize in the midst of a capture");
	cupti.finalizing = true;
	while (is_slow())
		sched_yield();
	cupti.finalizing = false;
	forget_all();
	cupti.finalize_cnt++;
	return OK;
}

/* --- the test's side --- */

static void fail_fatally(void)
{
	struct site site = { 0 };
	callback_fn callback = atomic_load(&cupti.callback);

	cupti.failing = true;
	if (cupti.state_on && callback != NULL)
		callback(NULL, 6, 1, &site);
	forget_all();
}

void double_set(const char *key, int64_t value)
{
	struct {
		const char *key;
		int64_t *at;
	} const keys[] = {
		{ "version", &cupti.version }, { "kernel", &cupti.kernel },
		{ "busy", &cupti.busy },       { "refuse", &cupti.refuse },
		{ "untimed", &cupti.untimed }, { "deaf", &cupti.deaf },
		{ "repeat", &cupti.repeat },   { "slow", &cupti.slow },
		{ "lag", &cupti.lag },
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
	int64_t cnt = cupti.driver_on;

	for (size_t i = 0; i < CALL_CNT; i++)
		cnt += cupti.sites[i];
	return cnt;
}

static int64_t calls_on(void)
{
	int64_t cnt = 0;

	for (size_t i = 0; i < CALL_CNT; i++)
		cnt += cupti.runtime[i] + cupti.driver[i];
	return cnt;
}

int64_t double_count(const char *key)
{
	if (strcmp(key, "kernels") == 0)
		return (int64_t)cupti.kernel_cnt;
	if (strcmp(key, "buffers") == 0)
		return (int64_t)cupti.buffer_cnt;
	if (strcmp(key, "finalized") == 0)
		return (int64_t)cupti.finalize_cnt;
	if (strcmp(key, "attached") == 0)
		return cupti.attached;
	if (strcmp(key, "enabled") == 0)
		return __builtin_popcountll(cupti.kinds);
	if (strcmp(key, "calls") == 0)
		return calls_on();
	if (strcmp(key, "callback_ns") == 0)
		return cupti.callback_ns;
	if (strcmp(key, "sites") == 0)
		return sites_on();
	if (strcmp(key, "failing") == 0)
		return cupti.failing;
	return cupti.fault_cnt;
}

const char *double_fault(void)
{
	return cupti.fault;
}
