/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/perfevents.h"

#include "base/str.h"
#include "host/stallwatch/perfdenial.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	THREAD_PAGES = 32, /* of records */
	CPU_PAGES = 256,
	CPU_PAGES_MANY = 64, /* on hosts with many CPUs */
	CPUS_MANY = 64,
	STACK_MAX = 48,
	RECORD_BYTES = 64 << 10, /* the size of a record is 16 bits */
#if defined(__x86_64__)
	FIRST_ARGUMENT = 1 << 5, /* DI, bit of <asm/perf_regs.h> */
#elif defined(__aarch64__)
	FIRST_ARGUMENT = 1 << 0, /* x0; it has the result when the call ends */
#else
	FIRST_ARGUMENT = 0,
#endif
};

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	const long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static struct perf_event_attr common_attr(uint32_t type, uint64_t config)
{
	return (struct perf_event_attr){
		.type = type,
		.config = config,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_callchain_user = 1,
		.sample_max_stack = STACK_MAX,
	};
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void ring_close(struct perfring *ring)
{
	if (ring->map != NULL)
		(void)munmap(ring->map, ring->bytes + page_bytes());
	if (ring->fd >= 0)
		(void)close(ring->fd);
	*ring = (struct perfring){ .fd = -1 };
}

/* The descriptor belongs to the ring then. Less memory where the limit of locked memory is low. */
static int ring_map(struct perfring *ring, int fd, size_t pages, bool regs)
{
	void *map = MAP_FAILED;

	*ring = (struct perfring){ .fd = fd, .regs = regs };
	for (; pages >= 2; pages /= 2) {
		ring->bytes = pages * page_bytes();
		map = mmap(NULL, ring->bytes + page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
		if (map != MAP_FAILED)
			break;
	}
	if (map == MAP_FAILED) {
		const int error = -errno;

		ring_close(ring);
		return error;
	}
	ring->map = map;
	return 0;
}

/* Records of a ring. */

struct drain {
	struct perfevents *events;
	perfevents_take *take;
	void *context;
	enum perfevent_role role;
	size_t index;
};

/* The record at that place; a copy where it wraps around. */
static const unsigned char *record_at(const struct perfring *ring, uint64_t tail, size_t len,
				      unsigned char *copy)
{
	const unsigned char *data = (const unsigned char *)ring->map + page_bytes();
	const size_t at = tail & (ring->bytes - 1), first = ring->bytes - at;

	if (len <= first)
		return data + at;
	memcpy(copy, data + at, first);
	memcpy(copy + first, data, len - first);
	return copy;
}

static enum perfevent_role role_of(const struct drain *drain, uint64_t id)
{
	const struct perfcpu *cpu;

	if (drain->role == PERFEVENT_THREAD)
		return PERFEVENT_THREAD;
	cpu = &drain->events->cpus.data[drain->index];
	if (cpu->waking_fd >= 0 && id == cpu->waking_id)
		return PERFEVENT_WAKING;
	return cpu->signal_fd >= 0 && id == cpu->signal_id ? PERFEVENT_SIGNAL : PERFEVENT_CPU;
}

static int ring_drain(const struct drain *drain, struct perfring *ring)
{
	struct perf_event_mmap_page *page = ring->map;
	uint64_t tail, head;
	int error = 0;

	if (ring->map == NULL)
		return 0;
	/* The kernel writes records, then head; the reader frees them by tail. */
	head = atomic_load_explicit((_Atomic uint64_t *)&page->data_head, memory_order_acquire);
	tail = page->data_tail;
	while (error == 0 && head - tail >= sizeof(struct perf_event_header)) {
		const unsigned char *header = record_at(
			ring, tail, sizeof(struct perf_event_header), drain->events->copy);
		const size_t len = ((const struct perf_event_header *)(const void *)header)->size;
		struct perfrecord record;

		if (len < sizeof(struct perf_event_header) || len > head - tail) {
			tail = head; /* nothing behind it can be found */
			break;
		}
		if (perfrecord_parse(record_at(ring, tail, len, drain->events->copy), len,
				     ring->regs, &record) == 0)
			error = drain->take(drain->context, role_of(drain, record.id), drain->index,
					    &record);
		tail += len;
	}
	atomic_store_explicit((_Atomic uint64_t *)&page->data_tail, tail, memory_order_release);
	return error;
}

int perfevents_drain(struct perfevents *events, perfevents_take *take, void *context)
{
	struct drain drain = { events, take, context, PERFEVENT_THREAD, 0 };
	int error = 0;

	for (; drain.index < events->threads.cnt && error == 0; drain.index++)
		error = ring_drain(&drain, &events->threads.data[drain.index].ring);
	drain.role = PERFEVENT_CPU;
	for (drain.index = 0; drain.index < events->cpus.cnt && error == 0; drain.index++)
		error = ring_drain(&drain, &events->cpus.data[drain.index].ring);
	return error;
}

/* Whether the kernel knows this thread by another number. */

static int take_own(void *context, enum perfevent_role role, size_t index,
		    const struct perfrecord *record)
{
	struct perfevents *events = context;
	int64_t pid;

	(void)role;
	(void)index;
	if (record->kind == PERFRECORD_SAMPLE &&
	    perfrecord_number(record, events->points.of[TRACEPOINT_SWITCH].pid_off, 4, &pid))
		events->foreign_pids = pid != (int64_t)syscall(SYS_gettid);
	return 0;
}

static void find_namespace(struct perfevents *events)
{
	struct perf_event_attr attr =
		common_attr(PERF_TYPE_TRACEPOINT, events->points.of[TRACEPOINT_SWITCH].id);
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct drain drain = { events, take_own, events, PERFEVENT_THREAD, 0 };
	struct perfring ring;
	const int fd = event_open(&attr, 0, -1);

	if (fd < 0 || ring_map(&ring, fd, 2, false) < 0)
		return;
	(void)nanosleep(&moment, NULL);
	(void)ring_drain(&drain, &ring);
	ring_close(&ring);
}

int perfevents_open(struct perfevents *events, struct stall_recording *recording)
{
	*events = (struct perfevents){ .copy = malloc(RECORD_BYTES) };
	if (events->copy == NULL)
		return -ENOMEM;
	if (tracepoints_read(&events->points) < 0)
		return stallrecording_note(
			recording,
			"who woke the threads, and in which state they left the CPU: "
			"the kernel's tracepoints need root or CAP_PERFMON, and tracefs");
	find_namespace(events);
	return 0;
}

void perfevents_close(struct perfevents *events)
{
	vec_foreach(thread, &events->threads)
		ring_close(&thread->ring);
	vec_foreach(cpu, &events->cpus) {
		ring_close(&cpu->ring);
		if (cpu->waking_fd >= 0)
			(void)close(cpu->waking_fd);
		if (cpu->signal_fd >= 0)
			(void)close(cpu->signal_fd);
	}
	vec_done(&events->threads);
	vec_done(&events->cpus);
	free(take_ptr(events->copy));
}

/* Threads. */

struct way {
	uint32_t type;
	uint64_t config;
	bool kernel; /* with the kernel's stack and a register of user space */
	uint32_t sources;
};

static int open_way(const struct way *way, uint32_t tid, struct perfring *ring)
{
	struct perf_event_attr attr = common_attr(way->type, way->config);
	int fd;

	attr.context_switch = 1;
	if (way->kernel && FIRST_ARGUMENT != 0) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = FIRST_ARGUMENT;
	}
	attr.exclude_kernel = !way->kernel;
	fd = event_open(&attr, (pid_t)tid, -1);
	return fd < 0 ? fd : ring_map(ring, fd, THREAD_PAGES, way->kernel && FIRST_ARGUMENT != 0);
}

int perfevents_add_thread(struct perfevents *events, uint32_t tid,
			  struct stall_recording *recording)
{
	const uint32_t id = events->points.of[TRACEPOINT_SWITCH].id;
	const struct way ways[] = {
		{ PERF_TYPE_TRACEPOINT, id, true,
		  STALL_BY_SWITCHES | STALL_BY_STACKS | STALL_BY_STATES },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true,
		  STALL_BY_SWITCHES | STALL_BY_STACKS },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false, STALL_BY_SWITCHES },
	};
	struct perfthread thread = { .ring.fd = -1,
				     .tid = tid,
				     .global_tid = events->foreign_pids ? 0 : tid };
	int error = -EACCES;

	for (size_t i = id != 0 ? 0 : 1; i < ARRAY_SIZE(ways); i++) {
		error = open_way(&ways[i], tid, &thread.ring);
		if (error == -ESRCH)
			return error;
		if (error < 0)
			continue;
		recording->sources |= ways[i].sources;
		if (vec_push(&events->threads, thread) == 0)
			return 0;
		ring_close(&thread.ring);
		return -ENOMEM;
	}
	return error;
}

/* CPUs. */

static bool append_filter(const struct perfevents *events, struct str *filter)
{
	bool any = false;

	vec_foreach(thread, &events->threads) {
		if (thread->global_tid == 0)
			continue;
		str_printf(filter, "%spid==%u", any ? "||" : "", thread->global_tid);
		any = true;
	}
	if (!any)
		str_append(filter, "pid==-1");
	return str_error(filter) == 0;
}

/* An event without its filter would record all of the host: it is closed then. */
static void filter_event(int *fd, const char *filter)
{
	if (*fd < 0 || ioctl(*fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0)
		return;
	(void)close(*fd);
	*fd = -1;
}

void perfevents_filter(struct perfevents *events, struct stall_recording *recording)
{
	_cleanup_(str_done) struct str waking = { 0 }, stops = { 0 };

	if (!append_filter(events, &waking))
		return;
	str_printf(&stops, "(%s)&&(sig==%d||sig==%d||sig==%d||sig==%d)", str_borrow(&waking),
		   SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU);
	if (str_error(&stops) < 0)
		return;
	vec_foreach(cpu, &events->cpus) {
		filter_event(&cpu->waking_fd, str_borrow(&waking));
		filter_event(&cpu->signal_fd, str_borrow(&stops));
		if (cpu->ring.fd >= 0 && cpu->waking_fd < 0)
			(void)stallrecording_note(recording,
						  "who woke the threads on some CPUs: the kernel "
						  "did not take the filter");
	}
}

/* A tracepoint of all of a CPU, into the ring of that CPU. It records from its filter on. */
static int open_beside(const struct perfcpu *cpu, int number, uint32_t id, uint64_t *ret_id)
{
	struct perf_event_attr attr = common_attr(PERF_TYPE_TRACEPOINT, id);
	int fd;

	if (id == 0)
		return -1;
	attr.disabled = 1;
	fd = event_open(&attr, -1, number);
	if (fd < 0)
		return -1;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->ring.fd) != 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ID, ret_id) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int open_cpu(struct perfcpu *cpu, int number, struct perf_event_attr attr, size_t pages)
{
	const int fd = event_open(&attr, -1, number);

	return fd < 0 ? fd : ring_map(&cpu->ring, fd, pages, false);
}

static void enable(int fd)
{
	if (fd >= 0)
		(void)ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void tell_cpus(int error, struct stall_recording *recording)
{
	char text[200];

	if (error == 0)
		return;
	if (perfdenial_find(-error)) {
		(void)stallrecording_note(
			recording, "who had the CPUs and who woke the threads: " PERFDENIAL_FILTER);
		return;
	}
	(void)snprintf(
		text, sizeof(text),
		"who had the CPUs and who woke the threads: events of a whole CPU need root, "
		"CAP_PERFMON or kernel.perf_event_paranoid 0 (%s)",
		strerror(-error));
	(void)stallrecording_note(recording, text);
}

int perfevents_add_cpus(struct perfevents *events, uint32_t hz, bool switches,
			struct stall_recording *recording)
{
	struct perf_event_attr attr = common_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	const int cnt = (int)sysconf(_SC_NPROCESSORS_CONF);
	const size_t pages = cnt > CPUS_MANY ? CPU_PAGES_MANY : CPU_PAGES;
	int failed = 0;

	attr.freq = 1;
	attr.sample_freq = hz;
	attr.exclude_idle = 1;
	attr.context_switch = switches;
	attr.comm = 1;
	for (int i = 0; i < cnt; i++) {
		struct perfcpu cpu = { .ring.fd = -1, .waking_fd = -1, .signal_fd = -1 };
		const int error = open_cpu(&cpu, i, attr, pages);

		/* One that is offline has no events, and runs nothing. */
		if (error == 0) {
			cpu.waking_fd = open_beside(
				&cpu, i, events->points.of[TRACEPOINT_WAKING].id, &cpu.waking_id);
			cpu.signal_fd = open_beside(
				&cpu, i, events->points.of[TRACEPOINT_SIGNAL].id, &cpu.signal_id);
			recording->sources |= STALL_BY_SAMPLES | (switches ? STALL_BY_CPUS : 0u) |
					      (cpu.waking_fd >= 0 ? STALL_BY_WAKERS : 0u);
		} else if (error != -ENODEV) {
			failed = error;
		}
		if (vec_push(&events->cpus, cpu) < 0)
			return -ENOMEM;
		if (error == -EACCES || error == -EPERM)
			break;
	}
	tell_cpus(failed, recording);
	perfevents_filter(events, recording);
	vec_foreach(cpu, &events->cpus) {
		enable(cpu->waking_fd);
		enable(cpu->signal_fd);
	}
	return 0;
}
