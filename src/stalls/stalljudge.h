/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a recording: each gap of a thread is divided into the time in which it was blocked and the
 * one in which it waited for a CPU; each of these gets a class, by the kernel's stack, the limits of
 * its cgroup and who had the CPUs meanwhile; parts of one class, function and culprit are a finding.
 * A pure function: the same recording gives the same verdict.
 *
 * Rules, in this order: stopped or traced; frozen; held back by a CPU limit; starved of CPU; memory
 * map held by another process; compaction; reclaim; network file systems; disk; GIL; locks of the
 * kernel; waits that a thread asked for, which are no stalls.
 */
#pragma once

#include "model/stalls/stallverdict.h"

/*
 * recording: sorted; it must outlive the verdict. Returns 0, and the caller frees by
 * stallverdict_done(), or -ENOMEM.
 */
_must_check_ int stalljudge(const struct stall_recording *recording, struct stall_verdict *ret);
