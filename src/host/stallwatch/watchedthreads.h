/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that a stall window watches, and what /proc says of them: state, how often and for how
 * long they had or waited for a CPU, page faults, and where the kernel lets them wait. Files remain
 * open, so that a look costs 1 to 20 us a thread. Never smaps or maps: these take the memory lock
 * that is looked for.
 */
#pragma once

#include "model/stalls/stallrecording.h"

enum watched_file { WATCHED_STAT, WATCHED_SCHEDSTAT, WATCHED_STACK, WATCHED_SYSCALL, WATCHED_CNT };

struct watchedthread {
	uint32_t tid, pid;
	int fds[WATCHED_CNT]; /* -1: not permitted, or ended */
	bool stack_is_wchan;  /* one function instead of all */
	bool ended;
	uint64_t first_cpu_ns, first_minor, first_major; /* when the window began */
	uint64_t delay_ns;				 /* at the last look */
	/* What the next OUT is about, from the sample before it. */
	bool pending;
	char state;
	uint32_t chain, file;
	uint64_t address;
	int64_t file_ns; /* when files of the thread were last asked for */
	uint64_t file_fd;
};

struct watchedthreads {
	const char *root; /* prefix before /proc; borrowed */
	VEC(struct watchedthread) list;
	size_t left_out; /* threads beyond the limit */
};

void watchedthreads_done(struct watchedthreads *threads);

/*
 * Adds the main thread of a process, and `max` - 1 others, those that used the most CPU so far.
 * Returns 0, -ESRCH without such a process, -ENOMEM.
 */
_must_check_ int watchedthreads_add(struct watchedthreads *threads, uint32_t pid, size_t max,
				    struct stall_recording *recording);

/*
 * Looks at all threads: events STALL_LOOK and STALL_DELAY. stacks: also where they wait. Returns
 * how many still live, or -ENOMEM.
 */
_must_check_ int watchedthreads_look(struct watchedthreads *threads, int64_t now_ns, bool stacks,
				     struct stall_recording *recording);

/* Fills cpu_ns and the faults of the recording's threads. */
void watchedthreads_finish(struct watchedthreads *threads, struct stall_recording *recording);

/* text: /proc/.../stack, innermost first. Writes the names with '<' between them to ret[size]. */
void watchedthreads_parse_stack(const char *text, char *ret, size_t size);
