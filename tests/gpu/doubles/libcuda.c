/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of sorts, behind the driver's names; see double.h. SONAME libcuda.so.1. */
#include "double.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT DOUBLE_EXPORT
#define STREAM_CNT 32
#define WORK_CNT 4096
#define MEET_CNT 65536

enum { RUNTIME = 2, LAUNCH = 211, COPY_ASYNC = 41, SET_ASYNC = 51, GRAPH_LAUNCH = 311 };
enum { STREAM_SYNC = 131 };
enum { GET_VERSION = 2, BEGIN_CAPTURE = 539, END_CAPTURE = 497 }; /* calls of the driver */
enum { MODE_GLOBAL, MODE_LOCAL, MODE_RELAXED };

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *ret);
EXPORT int cuDeviceGet(int *ret, int ordinal);
EXPORT int cuDeviceGetName(char *ret, int len, int device);
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
EXPORT int cuCtxGetCurrent(void **ret);
EXPORT int cuDriverGetVersion(int *ret);
EXPORT int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
EXPORT int cuStreamEndCapture(void *stream, void **ret);

struct stream;

struct work {
	struct double_kernel kernel;
	struct double_copy copy;
	bool is_copy;
	struct stream *other; /* to be waited for until so much is done */
	uint64_t other_done;
	int64_t ns;
	uint32_t members;
};

struct stream {
	uint32_t id;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work *work; /* ring */
	uint64_t added, done;
};

/* Where the processes of a collective meet: how many came to the n-th, and when the last did. */
struct meeting {
	_Atomic uint32_t came;
	_Atomic int64_t last_ns;
};

static struct {
	_Atomic(const struct double_watcher *) watcher;
	_Atomic int active;
	_Atomic uint32_t correlation;
	_Atomic int captures, broken;
	struct stream streams[STREAM_CNT];
	size_t stream_cnt;
	pthread_mutex_t lock;
	struct meeting *meetings;
	uint32_t meeting;
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int capture_mode = MODE_GLOBAL;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static const struct double_watcher *watcher(void)
{
	return atomic_load(&gpu.watcher);
}

static struct meeting *open_meetings(void)
{
	const char *path = getenv("DOUBLE_MEET");
	int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *memory;

	if (fd < 0 || ftruncate(fd, MEET_CNT * sizeof(struct meeting)) != 0)
		return NULL;
	memory = mmap(NULL, MEET_CNT * sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	(void)close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Returns when the last of the members has come: then. */
static int64_t meet(uint32_t members)
{
	struct meeting *at;
	int64_t now;

	if (gpu.meetings == NULL)
		gpu.meetings = open_meetings();
	if (gpu.meetings == NULL)
		return now_ns();
	at = &gpu.meetings[gpu.meeting++ % MEET_CNT];
	now = now_ns();
	for (int64_t last = atomic_load(&at->last_ns); last < now;) {
		if (atomic_compare_exchange_weak(&at->last_ns, &last, now))
			break;
	}
	atomic_fetch_add(&at->came, 1);
	while (atomic_load(&at->came) < members)
		sleep_until(now_ns() + 200000);
	return atomic_load(&at->last_ns);
}

static void wait_for(struct stream *stream, uint64_t done)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->done < done)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

static void carry_out(struct work *work)
{
	int64_t start = now_ns(), end = start + work->ns;

	if (work->other != NULL) {
		wait_for(work->other, work->other_done);
		return;
	}
	if (work->members > 1)
		end = meet(work->members) + work->ns;
	sleep_until(end);
	work->kernel.start_ns = work->copy.start_ns = start;
	work->kernel.end_ns = work->copy.end_ns = end;
	if (watcher() != NULL && work->is_copy)
		watcher()->copy(&work->copy);
	else if (watcher() != NULL)
		watcher()->kernel(&work->kernel);
}

static void *work_off(void *arg)
{
	struct stream *stream = arg;

	for (;;) {
		struct work work;

		pthread_mutex_lock(&stream->lock);
		while (stream->added == stream->done)
			pthread_cond_wait(&stream->changed, &stream->lock);
		work = stream->work[stream->done % WORK_CNT];
		pthread_mutex_unlock(&stream->lock);
		carry_out(&work);
		pthread_mutex_lock(&stream->lock);
		stream->done++;
		pthread_cond_broadcast(&stream->changed);
		pthread_mutex_unlock(&stream->lock);
	}
	return NULL;
}

static struct stream *stream_of(uint32_t id)
{
	struct stream *stream = NULL;

	pthread_mutex_lock(&gpu.lock);
	for (size_t i = 0; i < gpu.stream_cnt; i++) {
		if (gpu.streams[i].id == id)
			stream = &gpu.streams[i];
	}
	if (stream == NULL) {
		stream = &gpu.streams[gpu.stream_cnt++];
		stream->id = id;
		stream->work = calloc(WORK_CNT, sizeof(*stream->work));
		pthread_mutex_init(&stream->lock, NULL);
		pthread_cond_init(&stream->changed, NULL);
		pthread_create(&stream->thread, NULL, work_off, stream);
	}
	pthread_mutex_unlock(&gpu.lock);
	return stream;
}

static void add(uint32_t id, const struct work *work)
{
	struct stream *stream = stream_of(id);

	pthread_mutex_lock(&stream->lock);
	while (stream->added - stream->done >= WORK_CNT)
		pthread_cond_wait(&stream->changed, &stream->lock);
	stream->work[stream->added++ % WORK_CNT] = *work;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
}

static void tell_call(uint32_t call, int64_t start_ns, uint32_t correlation)
{
	struct double_call what = {
		RUNTIME, call, start_ns, now_ns(), (uint32_t)syscall(SYS_gettid), correlation
	};

	if (watcher() != NULL)
		watcher()->call(&what);
}

/* --- the job's side --- */

void double_watch(const struct double_watcher *by)
{
	atomic_store(&gpu.watcher, by);
}

void double_context(int active)
{
	atomic_store(&gpu.active, active);
}

void double_launch(const char *name, uint32_t stream, int64_t ns, uint32_t members)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	int64_t start_ns = now_ns();
	struct work work = { .kernel = { .name = name,
					 .stream = stream,
					 .correlation = correlation,
					 .threads = 1024 },
			     .ns = ns,
			     .members = members };

	add(stream, &work);
	tell_call(LAUNCH, start_ns, correlation);
}

void double_copy(uint8_t kind, uint64_t bytes, uint32_t stream, int64_t ns)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	int64_t start_ns = now_ns();
	struct work work = { .copy = { .kind = kind,
				       .from = kind == 2 ? 3 : 2,
				       .to = kind == 2 ? 2 : 3,
				       .bytes = bytes,
				       .stream = stream,
				       .correlation = correlation },
			     .is_copy = true,
			     .ns = ns };

	add(stream, &work);
	tell_call(kind == 0 ? SET_ASYNC : COPY_ASYNC, start_ns, correlation);
}

void double_graph(uint32_t stream, uint32_t nodes, int64_t ns)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	int64_t start_ns = now_ns();

	for (uint32_t i = 0; i < nodes; i++) {
		struct work work = { .kernel = { .name = "_Z10graph_nodePf",
						 .stream = stream,
						 .correlation = correlation,
						 .threads = 256,
						 .graph_node = (uint64_t)7 << 32 | (i + 1) },
				     .ns = ns };

		add(stream, &work);
	}
	tell_call(GRAPH_LAUNCH, start_ns, correlation);
}

void double_wait(uint32_t id, uint32_t other)
{
	struct work work = { .other = stream_of(other) };

	pthread_mutex_lock(&work.other->lock);
	work.other_done = work.other->added;
	pthread_mutex_unlock(&work.other->lock);
	add(id, &work);
}

void double_synchronize(uint32_t id)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	struct stream *stream = stream_of(id);
	int64_t start_ns = now_ns();

	wait_for(stream, stream->added); /* the job's threads add on their own */
	if (watcher() != NULL)
		watcher()->sync(id, start_ns, now_ns(), correlation);
	tell_call(STREAM_SYNC, start_ns, correlation);
}

int double_disturb_captures(void)
{
	if (capture_mode != MODE_RELAXED)
		atomic_store(&gpu.broken, atomic_load(&gpu.captures));
	return atomic_load(&gpu.captures);
}

/* --- the driver's names --- */

static void tell_site(uint32_t call, int exit, int result)
{
	if (watcher() != NULL)
		watcher()->site(call, exit, result);
}

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuDeviceGetCount(int *ret)
{
	*ret = 1;
	return 0;
}

int cuDeviceGet(int *ret, int ordinal)
{
	*ret = ordinal;
	return ordinal == 0 ? 0 : 101;
}

int cuDeviceGetName(char *ret, int len, int device)
{
	(void)device;
	(void)snprintf(ret, (size_t)len, "Double GPU");
	return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = atomic_load(&gpu.active);
	return 0;
}

int cuCtxGetCurrent(void **ret)
{
	*ret = NULL;
	return 0;
}

int cuDriverGetVersion(int *ret)
{
	tell_site(GET_VERSION, 0, 0);
	*ret = 13000;
	tell_site(GET_VERSION, 1, 0);
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = capture_mode;

	capture_mode = *mode;
	*mode = before;
	return 0;
}

/* Of no stream: it is refused. */
int cuStreamBeginCapture_v2(void *stream, int mode)
{
	int result = stream == NULL || mode != MODE_GLOBAL ? 1 : 0;

	tell_site(BEGIN_CAPTURE, 0, 0);
	if (result == 0)
		atomic_fetch_add(&gpu.captures, 1);
	tell_site(BEGIN_CAPTURE, 1, result);
	return result;
}

int cuStreamEndCapture(void *stream, void **ret)
{
	int result = atomic_exchange(&gpu.broken, 0) > 0 ? 901 : 0;

	*ret = stream;
	tell_site(END_CAPTURE, 0, 0);
	atomic_fetch_sub(&gpu.captures, 1);
	tell_site(END_CAPTURE, 1, result);
	return result;
}

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	(void)double_disturb_captures();
	*ret_free = (size_t)8 << 30;
	*ret_total = (size_t)80 << 30;
	return 0;
}
