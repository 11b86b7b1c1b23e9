/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs while the training thread stalls. A trace with the Python stacks of all threads shows
 * another thread of the process that executes a function throughout the stalls and seldom between
 * them: it holds the interpreter's lock. A thread that waits in a call that is not known as one
 * (model/place/pywait.h) executes it in stalls and between them alike, and is no holder.
 */
#pragma once

#include "summarize/pass.h"
#include "summarize/usage/gaps.h"

/*
 * stalls: of the training thread. If there is a holder, and the CPU time of threads was not recorded,
 * fp->host_stats gets the holder's function with its callers and the time in which it executed, as a
 * share of the window. Returns 0 or -ENOMEM. O(n log n) in the events of other threads.
 */
_must_check_ int holder_find(struct pass *p, const gap_list *stalls, struct fingerprint *fp);
