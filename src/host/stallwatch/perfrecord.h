/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of the kernel's perf events, as bytes, parsed. All events here have the same layout of
 * samples: id, thread, time, CPU, kernel stack, raw fields of a tracepoint, and for events of a
 * thread one register of user space. Source: perf_event_open(2), <linux/perf_event.h>.
 */
#pragma once

#include "base/base.h"

enum perfrecord_kind {
	PERFRECORD_OTHER,
	PERFRECORD_SAMPLE,
	PERFRECORD_SWITCH, /* of the event's own thread; out, preempted */
	PERFRECORD_CPU_SWITCH,
	PERFRECORD_COMM, /* a process has a new name */
	PERFRECORD_LOST,
};

struct perfrecord {
	enum perfrecord_kind kind;
	uint64_t id; /* of the event */
	int64_t time_ns;
	uint32_t pid, tid, cpu;
	bool out, preempted;
	const uint64_t *chain; /* addresses of the kernel's functions, innermost first */
	size_t chain_cnt;
	const unsigned char *raw;
	size_t raw_len;
	uint64_t reg; /* the first argument of a system call; 0: unknown */
	uint64_t lost;
	char comm[16];
};

/*
 * bytes[len]: one record, aligned for uint64_t. regs: its samples have the register. ret points
 * into bytes. Returns 0 or -EINVAL.
 */
_must_check_ int perfrecord_parse(const unsigned char *bytes, size_t len, bool regs,
				  struct perfrecord *ret);

/* A number of a raw record. Returns false: it is not so long. */
bool perfrecord_number(const struct perfrecord *record, uint32_t off, uint32_t size, int64_t *ret);
