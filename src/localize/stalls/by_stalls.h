/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accuses the workers of a host whose functions stall at random places: functions that usually
 * take microseconds, many different ones, take milliseconds once in a while. Threads that get no
 * CPU look like this: too many busy processes or threads, or a cgroup's limit. Where a sidecar
 * measured the scheduler's run delay, that decides, and this witness is silent. The gain is a
 * bound: by iteration, the time in stalls of the worker that has most.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Appends at most one accusation, and drops those that the stalls explain, so it runs after the other
 * witnesses. A place where a worker has half of its stalls, and by which others wait in half of the
 * iterations, is not random: its accusation stays, and its stalls are left out. Returns 0 or -ENOMEM.
 * O(functions * workers * accusations).
 */
_must_check_ int accuse_by_stalls(const struct job *job, const struct blame *blame,
				  struct arena *arena, accusations *list);
