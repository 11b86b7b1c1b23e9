/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of the own process that may vanish at any moment: an address
 * that is not mapped is an error here, not a signal. The kernel copies, by
 * process_vm_readv on ourselves or, where a sandbox refuses that, from
 * /proc/self/mem. What another thread is writing may arrive half old, half new.
 *
 * Survives fork: the reader belongs to the process that opened it and reads
 * nothing in a child, which would otherwise see its parent's memory.
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>
#include <sys/uio.h>

struct selfmem {
	pid_t pid; /* the process whose memory is read; 0 before selfmem_open */
	int fd;	   /* of /proc/self/mem; -1 where the system call serves */
};

/* As *own for a child of the process. False where only the own memory can be read. */
static inline bool selfmem_child(const struct selfmem *own, pid_t child, struct selfmem *ret)
{
	*ret = (struct selfmem){ .pid = child, .fd = -1 };
	return own->fd < 0;
}

/* One stretch to read. */
struct selfmem_part {
	uintptr_t addr;
	void *buf;
	size_t size;
};

/* Finds which way works. 0, or -errno where neither does. The descriptor is never closed. */
_must_check_ int selfmem_open(struct selfmem *ret);

/* False in a child of the process that opened it. One system call. */
bool selfmem_usable(const struct selfmem *mem);

/* Reads all of [addr, addr + size); false if any of it can't be. */
_must_check_ bool selfmem_read(const struct selfmem *mem, uintptr_t addr, void *buf, size_t size);

/*
 * Reads up to SELFMEM_PARTS parts with one system call, in their order, up to
 * the first that can't be read as a whole. Returns how many were read.
 */
enum { SELFMEM_PARTS = 64 };
_must_check_ size_t selfmem_read_parts(const struct selfmem *mem, const struct selfmem_part *parts,
				       size_t cnt);
