/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of sorts, behind the driver's names; see double.h. SONAME libcuda.so.1. */
#include "double.h"
#include "gpu_double.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
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
#define GROUP_CNT 64
#define SEAT_CNT 16
#define TURN_CNT 16	/* more than a member can be ahead of another */
#define AHEAD_NS 200000 /* a stream that has more to do works so far ahead of its clock */
#define LAUNCH_NS 3000	/* from a call until the GPU can begin */
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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

enum work_kind { KERNEL, COPY, HOST, RECORD, WAIT, WAIT_AND_FREE };

struct work {
	enum work_kind kind;
	int64_t queued_ns, ns;
	struct double_kernel kernel;
	struct double_copy copy;
	struct double_group groups[DOUBLE_GROUPS];
	size_t group_cnt;
	void (*host)(void *arg);
	void *arg;
	struct double_event *event;
	uint32_t turn; /* of the event */
};

struct stream {
	uint32_t id;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work *work; /* ring */
	uint64_t added, done;
	int64_t clock_ns; /* what it has worked off ended then: exact, whenever its thread runs */
};

/* Where the members of a group meet, turn by turn: when each came, how long its part takes. */
struct meeting {
	_Atomic uint32_t came; /* of all turns that took this place; a futex */
	struct {
		int64_t came_ns, ns;
	} seats[SEAT_CNT];
};

static struct {
	_Atomic(const struct double_watcher *) watcher;
	_Atomic int active;
	_Atomic uint32_t correlation;
	_Atomic int captures, broken;
	struct stream streams[STREAM_CNT];
	size_t stream_cnt;
	pthread_mutex_t lock;
	struct meeting *meetings; /* [GROUP_CNT][TURN_CNT] */
	uint64_t turns[GROUP_CNT];
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int capture_mode = MODE_GLOBAL;
static __thread void *context;

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

static void wait_at(_Atomic uint32_t *futex, uint32_t seen)
{
	struct timespec second = { .tv_sec = 1 };

	(void)syscall(SYS_futex, futex, FUTEX_WAIT, seen, &second, NULL, 0);
}

static void wake_at(_Atomic uint32_t *futex)
{
	(void)syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- collectives --- */

static void open_meetings(void)
{
	size_t bytes = sizeof(struct meeting) * GROUP_CNT * TURN_CNT;
	const char *path = getenv("DOUBLE_MEET");
	int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *memory = MAP_FAILED;

	pthread_mutex_lock(&gpu.lock);
	if (gpu.meetings == NULL && fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		gpu.meetings = memory;
	pthread_mutex_unlock(&gpu.lock);
	if (fd >= 0)
		(void)close(fd);
}

static struct meeting *meeting_of(const struct double_group *group, uint64_t turn)
{
	if (gpu.meetings == NULL)
		open_meetings();
	return &gpu.meetings[group->id % GROUP_CNT * TURN_CNT + turn % TURN_CNT];
}

static uint32_t all_of(const struct double_group *group, uint64_t turn)
{
	return group->members * (uint32_t)(turn / TURN_CNT + 1);
}

static void come(const struct double_group *group, uint64_t turn, int64_t now, int64_t ns)
{
	struct meeting *at = meeting_of(group, turn);

	at->seats[group->rank].came_ns = now;
	at->seats[group->rank].ns = ns;
	if (atomic_fetch_add(&at->came, 1) + 1 >= all_of(group, turn))
		wake_at(&at->came);
}

void double_meet(const struct double_group *group, uint64_t turn, struct double_met *ret)
{
	struct meeting *at = meeting_of(group, turn);

	for (uint32_t came; (came = atomic_load(&at->came)) < all_of(group, turn);)
		wait_at(&at->came, came);
	*ret = (struct double_met){
		.own_ns = at->seats[group->rank].ns,
		.before_ns = at->seats[(group->rank + group->members - 1) % group->members].ns,
	};
	for (uint32_t i = 0; i < group->members; i++) {
		ret->last_ns = MAX(ret->last_ns, at->seats[i].came_ns);
		ret->ns = MAX(ret->ns, at->seats[i].ns);
	}
}

/* It begins when the last of the members has come, and moves at the pace of the slowest. */
static int64_t end_of_collective(const struct work *work, int64_t start_ns)
{
	int64_t end_ns = start_ns;
	struct double_met met;

	for (size_t i = 0; i < work->group_cnt; i++) {
		const struct double_group *group = &work->groups[i];

		come(group, gpu.turns[group->id % GROUP_CNT], start_ns, work->ns);
	}
	for (size_t i = 0; i < work->group_cnt; i++) {
		const struct double_group *group = &work->groups[i];

		double_meet(group, gpu.turns[group->id % GROUP_CNT]++, &met);
		end_ns = MAX(end_ns, met.last_ns + met.ns);
	}
	return end_ns;
}

/* --- events --- */

static void pass(struct double_event *event, uint32_t turn, int64_t at_ns)
{
	event->at_ns = at_ns;
	atomic_store(&event->passed, turn);
	wake_at(&event->passed);
}

/* Returns when it passed. */
static int64_t await(struct double_event *event, uint32_t turn)
{
	for (uint32_t passed; (int32_t)((passed = atomic_load(&event->passed)) - turn) < 0;)
		wait_at(&event->passed, passed);
	return event->at_ns;
}

/* --- streams --- */

static void wait_for(struct stream *stream, uint64_t done)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->done < done)
		pthread_cond_wait(&stream->changed, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

static void run(struct stream *stream, struct work *work, bool last)
{
	int64_t start_ns = MAX(stream->clock_ns, work->queued_ns + LAUNCH_NS);
	int64_t end_ns = start_ns + work->ns;

	if (work->group_cnt > 0)
		end_ns = end_of_collective(work, start_ns);
	stream->clock_ns = end_ns;
	if (last || end_ns - now_ns() > AHEAD_NS)
		sleep_until(end_ns);
	work->kernel.start_ns = work->copy.start_ns = start_ns;
	work->kernel.end_ns = work->copy.end_ns = end_ns;
	if (watcher() != NULL && work->kind == COPY)
		watcher()->copy(&work->copy);
	else if (watcher() != NULL)
		watcher()->kernel(&work->kernel);
}

static void carry_out(struct stream *stream, struct work *work, bool last)
{
	switch (work->kind) {
	case KERNEL:
	case COPY:
		run(stream, work, last);
		break;
	case HOST:
		work->host(work->arg);
		break;
	case RECORD:
		stream->clock_ns = MAX(stream->clock_ns, work->queued_ns);
		pass(work->event, work->turn, stream->clock_ns);
		break;
	case WAIT:
	case WAIT_AND_FREE:
		stream->clock_ns = MAX(stream->clock_ns, await(work->event, work->turn));
		if (work->kind == WAIT_AND_FREE)
			free(work->event);
		break;
	}
}

static void *work_off(void *arg)
{
	struct stream *stream = arg;

	for (;;) {
		struct work work;
		bool last;

		pthread_mutex_lock(&stream->lock);
		while (stream->added == stream->done)
			pthread_cond_wait(&stream->changed, &stream->lock);
		work = stream->work[stream->done % WORK_CNT];
		last = stream->done + 1 == stream->added;
		pthread_mutex_unlock(&stream->lock);
		carry_out(stream, &work, last);
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

static void add(uint32_t id, struct work *work)
{
	struct stream *stream = stream_of(id);

	work->queued_ns = now_ns();
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

void double_collective(const char *name, uint32_t stream, int64_t ns,
		       const struct double_group *groups, size_t cnt)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	int64_t start_ns = now_ns();
	struct work work = { .kernel = { .name = name,
					 .stream = stream,
					 .correlation = correlation,
					 .threads = 1024 },
			     .ns = ns,
			     .group_cnt = cnt };

	for (size_t i = 0; i < cnt; i++)
		work.groups[i] = groups[i];
	add(stream, &work);
	tell_call(LAUNCH, start_ns, correlation);
}

void double_launch(const char *name, uint32_t stream, int64_t ns, uint32_t members)
{
	(void)members;
	double_collective(name, stream, ns, NULL, 0);
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
			     .kind = COPY,
			     .ns = ns };

	add(stream, &work);
	tell_call(kind == 0 ? SET_ASYNC : COPY_ASYNC, start_ns, correlation);
}

void double_replay(uint32_t stream, const struct double_node *nodes, size_t cnt)
{
	uint32_t correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	int64_t start_ns = now_ns();

	for (size_t i = 0; i < cnt; i++) {
		struct work work = { .kind = nodes[i].host != NULL ? HOST : KERNEL,
				     .kernel = { .name = nodes[i].name,
						 .stream = stream,
						 .correlation = correlation,
						 .threads = 256,
						 .graph_node = (uint64_t)7 << 32 | (i + 1) },
				     .ns = nodes[i].ns,
				     .group_cnt = nodes[i].group_cnt,
				     .host = nodes[i].host,
				     .arg = nodes[i].arg };

		for (size_t j = 0; j < nodes[i].group_cnt; j++)
			work.groups[j] = nodes[i].groups[j];
		add(stream, &work);
	}
	tell_call(GRAPH_LAUNCH, start_ns, correlation);
}

void double_graph(uint32_t stream, uint32_t cnt, int64_t ns)
{
	struct double_node *nodes = calloc(cnt, sizeof(*nodes));

	for (uint32_t i = 0; i < cnt; i++)
		nodes[i] = (struct double_node){ .name = "_Z10graph_nodePf", .ns = ns };
	double_replay(stream, nodes, cnt);
	free(nodes);
}

void double_host(uint32_t stream, void (*host)(void *arg), void *arg)
{
	struct work work = { .kind = HOST, .host = host, .arg = arg };

	add(stream, &work);
}

void double_event_record(uint32_t stream, struct double_event *event)
{
	struct work work = { .kind = RECORD, .event = event, .turn = ++event->recorded };

	add(stream, &work);
}

void double_event_wait(uint32_t stream, struct double_event *event)
{
	struct work work = { .kind = WAIT, .event = event, .turn = event->recorded };

	add(stream, &work);
}

void double_wait(uint32_t id, uint32_t other)
{
	struct double_event *event = calloc(1, sizeof(*event));
	struct work work = { .kind = WAIT_AND_FREE, .event = event, .turn = 1 };

	double_event_record(other, event);
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

void double_gpu_context(void *of_thread)
{
	context = of_thread;
}

int cuCtxGetCurrent(void **ret)
{
	*ret = context;
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
