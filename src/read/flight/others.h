/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For whom the training thread waited, and where that one was meanwhile: the children of its
 * loader, another Python thread that feeds it by a queue, a future or a lock, or a child process
 * that answers through a pipe or a queue.
 *
 * Of a thread that waits in Python's own modules for others (queue.py, threading.py,
 * multiprocessing/...) nothing says which thread it waits for. Another thread counts if it ran when
 * the waits ended or shortly before, as one does that ends them: at half of the ends at least. One
 * that mostly sleeps, such as a heartbeat, does not, and one that waits itself has no part in it. Of
 * two that ran at the ends, one that ran all the time goes behind one that ran only then.
 *
 * Where there is no such wait, a function of the user's own in the system call of a lock counts as
 * one: lock.acquire() and SimpleQueue.get() have no Python function. An operator that waits for its
 * own threads looks the same, so a thread that runs all the time is not named then.
 */
#pragma once

#include "read/flight/placing.h"

/*
 * Of samples in [start_ns, end_ns]: the loader's children if any was seen at work, else as
 * flight_others(). Returns 0 or -ENOMEM. O(samples * threads + nodes).
 */
_must_check_ int flight_awaited(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
				struct flight_place *ret);

/* Of other threads and children. all: every thread counts, as in a wait that does not end. */
_must_check_ int flight_others(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
			       bool all, struct flight_place *ret);

/*
 * The thread that ended last, since start_ns and before the last sample of the training thread: where
 * it was seen last, and how long ago, *ago_ns. sample_cnt 0: none. Returns 0 or -ENOMEM.
 */
_must_check_ int flight_ended_thread(const struct flightlog *log, int64_t start_ns, int64_t *ago_ns,
				     struct flight_place *ret);
