/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack.c as a library of its own, for test_pystack.py. All reading is done by
 * threads of the C library that Python knows nothing of, as in the agent.
 */
#include "agent/python/pystack.h"
#include "base/clock.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { THREADS = 64, DEPTH = 1024, ROOTS = 64 };

struct probe_stack {
	uint32_t tid, depth, truncated, leaf_instr;
	uintptr_t codes[DEPTH];
};

struct probe_request {
	struct probe_stack *stacks;
	size_t cap, depth; /* depth: how deep to walk */
	size_t cnt, dropped;
};

/* The stack of a child's main thread; error: 0 or what pystack_child returned. */
struct probe_child {
	uint32_t pid;
	int32_t error;
	struct pystack_process process;
	uint32_t depth, named;
	struct pycode codes[PYSTACK_DEPTH]; /* from the outermost one on */
};

static const struct pystack_process own;

struct probe_stats {
	uint64_t walks, idle, unreadable, truncated, frames, named, nameless, stamps, no_gil;
	uint64_t root_cnt[ROOTS], other_roots;
	uintptr_t root[ROOTS];
};

EXPORT int probe_open(char *why, size_t size);
EXPORT int probe_check(const uintptr_t *expected, size_t cnt);
EXPORT int probe_code(uintptr_t code, struct pycode *ret);
EXPORT size_t probe_stamps(const uintptr_t *codes, size_t cnt, uint64_t *stamps);
EXPORT int probe_gil(struct pywalk_gil *ret, unsigned later_us);
EXPORT uintptr_t probe_futex(uint32_t tid, unsigned later_us);
EXPORT int probe_sample(struct probe_request *request);
EXPORT int probe_child(struct probe_child *child);
EXPORT int probe_forbid(void);
EXPORT int probe_hammer(unsigned pause_us);
EXPORT void probe_hammer_end(struct probe_stats *ret);
EXPORT size_t probe_fuzz(uint32_t tid, size_t rounds);
EXPORT uint64_t probe_cost(uint32_t tid, size_t rounds, bool with_stamps);

int probe_open(char *why, size_t size)
{
	return pystack_open(why, size);
}

int probe_check(const uintptr_t *expected, size_t cnt)
{
	return pystack_check(expected, cnt);
}

int probe_code(uintptr_t code, struct pycode *ret)
{
	return pystack_code(&own, code, ret);
}

size_t probe_stamps(const uintptr_t *codes, size_t cnt, uint64_t *stamps)
{
	return pystack_stamps(&own, codes, cnt, stamps);
}

/* After a while in which others may take the GIL, if the caller let go of it. */
int probe_gil(struct pywalk_gil *ret, unsigned later_us)
{
	usleep(later_us);
	return pystack_gil(ret);
}

/* The address on which that thread waits in futex; 0 if it is not in futex. */
uintptr_t probe_futex(uint32_t tid, unsigned later_us)
{
	char path[64];
	long number = -1;
	unsigned long addr = 0;
	FILE *file;

	usleep(later_us);
	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/syscall", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%ld %lx", &number, &addr) != 2 || number != SYS_futex)
		addr = 0;
	(void)fclose(file);
	return addr;
}

static void *sample(void *argument)
{
	struct probe_request *request = argument;
	struct pystack_thread threads[THREADS];
	bool truncated;

	request->cnt =
		pystack_threads(threads, MIN(request->cap, (size_t)THREADS), &request->dropped);
	for (size_t i = 0; i < request->cnt; i++) {
		struct probe_stack *stack = &request->stacks[i];

		stack->tid = threads[i].tid;
		stack->depth = (uint32_t)pystack_walk(&threads[i], stack->codes, request->depth,
						      &truncated, &stack->leaf_instr);
		stack->truncated = truncated;
	}
	return NULL;
}

int probe_sample(struct probe_request *request)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sample, request) != 0)
		return -1;
	return pthread_join(thread, NULL);
}

static void *look_at_child(void *argument)
{
	struct probe_child *child = argument;
	struct pystack_thread thread;
	uintptr_t codes[PYSTACK_DEPTH];
	uint64_t stamps[PYSTACK_DEPTH];

	child->process.pid = child->pid;
	child->depth = child->named = 0;
	child->error = pystack_child(&child->process, &thread);
	if (child->error < 0)
		return NULL;
	child->depth = (uint32_t)pystack_walk(&thread, codes, PYSTACK_DEPTH, NULL, NULL);
	child->error = pystack_stamps(&child->process, codes, child->depth, stamps) == child->depth
			       ? 0
			       : -1;
	for (size_t i = 0; i < child->depth; i++)
		child->named += pystack_code(&child->process, codes[child->depth - 1 - i],
					     &child->codes[i]) == 0;
	return NULL;
}

/* process.interp 0: for the first time. */
int probe_child(struct probe_child *child)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, look_at_child, child) != 0)
		return -1;
	return pthread_join(thread, NULL);
}

/* From now on the kernel refuses process_vm_readv, as some sandboxes do. */
int probe_forbid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The hammer: reads all threads at full speed until end is set. */

static struct probe_stats stats;
static _Atomic bool hammering, end;
static pthread_t hammer_thread;
static unsigned hammer_pause_us;

static void note_root(uintptr_t code)
{
	size_t i = 0;

	while (i < ROOTS && stats.root[i] != 0 && stats.root[i] != code)
		i++;
	if (i == ROOTS) {
		stats.other_roots++;
		return;
	}
	stats.root[i] = code;
	stats.root_cnt[i]++;
}

static void hammer_one(const struct pystack_thread *thread)
{
	uintptr_t codes[PYSTACK_DEPTH];
	uint64_t stamps[PYSTACK_DEPTH];
	struct pycode code;
	bool truncated;
	uint32_t instr;
	size_t depth = pystack_walk(thread, codes, PYSTACK_DEPTH, &truncated, &instr);

	stats.walks++;
	stats.idle += depth == 0 && !truncated;
	stats.unreadable += depth == 0 && truncated;
	stats.truncated += depth != 0 && truncated;
	stats.frames += depth;
	if (depth == 0)
		return;
	if (!truncated)
		note_root(codes[depth - 1]);
	stats.stamps += pystack_stamps(&own, codes, depth, stamps);
	if (pystack_code(&own, codes[stats.walks % depth], &code) == 0)
		stats.named++;
	else
		stats.nameless++;
}

static void *hammer(void *argument)
{
	struct pystack_thread threads[THREADS];
	struct pywalk_gil gil;
	size_t cnt, dropped;

	while (!atomic_load(&end)) {
		cnt = pystack_threads(threads, THREADS, &dropped);
		for (size_t i = 0; i < cnt; i++)
			hammer_one(&threads[i]);
		stats.no_gil += pystack_gil(&gil) < 0;
		if (hammer_pause_us > 0)
			usleep(hammer_pause_us);
	}
	return argument;
}

/* pause_us: between two looks at everything; 0: at full speed. */
int probe_hammer(unsigned pause_us)
{
	hammer_pause_us = pause_us;
	atomic_store(&end, false);
	atomic_store(&hammering, true);
	return pthread_create(&hammer_thread, NULL, hammer, NULL);
}

void probe_hammer_end(struct probe_stats *ret)
{
	if (atomic_exchange(&hammering, false)) {
		atomic_store(&end, true);
		(void)pthread_join(hammer_thread, NULL);
	}
	*ret = stats;
}

/* Runs after the interpreter is finalized. */
__attribute__((destructor)) static void report(void)
{
	uint64_t before = stats.walks;

	if (!atomic_load(&hammering))
		return;
	usleep(20000);
	probe_hammer_end(&stats);
	printf("hammered to the end: %llu walks, %llu of them after finalization\n",
	       (unsigned long long)stats.walks, (unsigned long long)(stats.walks - before));
}

/* Garbage: copies of a thread with bits flipped, and junk for code objects. */

enum { COPY = 320 }; /* of a PyThreadState; all that is read of it */

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Flips low and high bits alike: pointers to near by, to elsewhere, to nowhere. */
static void spoil(unsigned char copy[static COPY], uint64_t *seed)
{
	uint64_t flips = 1 + next_random(seed) % 4;

	for (uint64_t i = 0; i < flips; i++) {
		uint64_t bit = next_random(seed) % (COPY * 8);

		copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

/* Returns how many of the spoilt threads gave a stack. */
size_t probe_fuzz(uint32_t tid, size_t rounds)
{
	struct pystack_thread threads[THREADS], fake;
	unsigned char copy[COPY];
	uintptr_t codes[PYSTACK_DEPTH];
	uint64_t stamps[PYSTACK_DEPTH], seed = 88172645463325252u;
	struct pycode code;
	size_t dropped, cnt = pystack_threads(threads, THREADS, &dropped), found = 0;

	for (size_t i = 0; i < cnt * rounds; i++) {
		if (threads[i % cnt].tid != tid)
			continue;
		memcpy(copy, (const void *)threads[i % cnt].tstate, sizeof(copy));
		spoil(copy, &seed);
		fake = (struct pystack_thread){ .tid = tid, .tstate = (uintptr_t)copy };
		found += pystack_walk(&fake, codes, PYSTACK_DEPTH, NULL, NULL) > 0;
		for (size_t j = 0; j < PYSTACK_DEPTH; j++)
			codes[j] ^= next_random(&seed) & UINT64_C(0xfff8);
		(void)pystack_stamps(&own, codes, PYSTACK_DEPTH, stamps);
		if (pystack_code(&own, codes[i % PYSTACK_DEPTH], &code) == 0 &&
		    strnlen(code.name, sizeof(code.name)) == sizeof(code.name))
			return 0;
		fake.tstate = next_random(&seed) >> (seed % 64);
		(void)pystack_walk(&fake, codes, PYSTACK_DEPTH, NULL, NULL);
	}
	return found;
}

struct cost {
	uint32_t tid;
	size_t rounds;
	bool with_stamps;
	uint64_t ns;
};

static void *cost(void *argument)
{
	struct cost *cost = argument;
	struct pystack_thread threads[THREADS], thread = { 0 };
	uintptr_t codes[PYSTACK_DEPTH];
	uint64_t stamps[PYSTACK_DEPTH];
	bool truncated;
	uint32_t instr;
	size_t cnt, dropped, depth;
	int64_t begin, best = INT64_MAX;

	cnt = pystack_threads(threads, THREADS, &dropped);
	for (size_t i = 0; i < cnt; i++)
		if (threads[i].tid == cost->tid)
			thread = threads[i];
	for (size_t i = 0; i < cost->rounds; i++) {
		begin = clock_mono_ns();
		for (size_t j = 0; j < 100; j++) {
			depth = pystack_walk(&thread, codes, PYSTACK_DEPTH, &truncated, &instr);
			if (cost->with_stamps)
				(void)pystack_stamps(&own, codes, depth, stamps);
		}
		best = MIN(best, clock_mono_ns() - begin);
	}
	cost->ns = (uint64_t)best / 100;
	return NULL;
}

/* Nanoseconds for one sample of that thread: the best mean of a hundred. */
uint64_t probe_cost(uint32_t tid, size_t rounds, bool with_stamps)
{
	struct cost asked = { tid, rounds, with_stamps, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, cost, &asked) != 0)
		return 0;
	(void)pthread_join(thread, NULL);
	return asked.ns;
}
