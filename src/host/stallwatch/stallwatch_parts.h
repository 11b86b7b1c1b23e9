/* SPDX-License-Identifier: Apache-2.0 */
/* What a stall window holds while it is open. For this folder alone. */
#pragma once

#include "host/stallwatch/cpuquota.h"
#include "host/stallwatch/gccollections.h"
#include "host/stallwatch/kernelnames.h"
#include "host/stallwatch/perfevents.h"
#include "host/stallwatch/seenprocesses.h"
#include "host/stallwatch/watchedthreads.h"

struct watched_quota {
	uint32_t pid;
	struct cpuquota quota;
};

struct stallwatch {
	struct stall_recording *recording;
	struct kernelnames names;
	bool named; /* names of kernel functions are known */
	struct perfevents events;
	struct watchedthreads threads;
	struct seenprocesses seen;
	VEC(struct watched_quota) quotas;
	struct gccollections collections;
	struct idmap chains; /* text ids by the hash of their addresses */
	bool filters_stale;  /* a thread's global id was learned */
};

/* Takes a record of the kernel into the recording. A perfevents_take. */
_must_check_ int stallwatch_take(void *context, enum perfevent_role role, size_t index,
				 const struct perfrecord *record);
