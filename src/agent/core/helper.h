/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the agent's own threads in a training process; they run until the process ends. Included
 * by each module that has such a thread; holds no state.
 */
#pragma once

#include "base/base.h"
#include "base/compat.h"

#include <errno.h>
#include <signal.h>

/*
 * The thread is detached and blocks all signals, so that the job's signals reach the job's threads.
 * stack_bytes includes the thread-local data of all of the job's libraries. Returns 0 or -errno.
 */
_must_check_ static inline int helper_start(void *(*run)(void *), size_t stack_bytes)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	if (pthread_attr_init(&attr) != 0)
		return -ENOMEM;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, stack_bytes);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, &attr, run, NULL);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -ret;
}
