/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's registers by their DWARF numbers, and where to read memory while its stack is unwound.
 * Source: System V ABI, AMD64 supplement, figure 3.36.
 */
#pragma once

#include "base/base.h"

#include <sys/types.h>

enum {
	REGISTER_BX = 3,
	REGISTER_BP = 6,
	REGISTER_SP = 7,
	REGISTER_PC = 16,
	REGISTER_CNT = 17,
};

struct registers {
	uint64_t value[REGISTER_CNT];
	uint32_t known; /* a set of 1 << number */
};

static inline void registers_set(struct registers *registers, unsigned int number, uint64_t value)
{
	registers->value[number] = value;
	registers->known |= 1u << number;
}

static inline bool registers_know(const struct registers *registers, unsigned int number)
{
	return number < REGISTER_CNT && (registers->known >> number & 1) != 0;
}

/* A copy of the used part of a stack. A blocked thread's is extended when more is needed. */
struct stackcopy {
	uintptr_t begin, end; /* of what may be copied */
	size_t len;	      /* bytes from begin that are in data */
	unsigned char *data;
	pid_t live; /* the thread whose memory may still be read; 0: it went on since */
};

/* False: the address is outside the stack, or can't be read. */
_must_check_ bool stackcopy_word(struct stackcopy *stack, uintptr_t addr, uint64_t *ret);

/*
 * Copies up to `len` bytes from sp on, at most to `end`. Returns 0, -ENOMEM or -EFAULT;
 * stackcopy_done in either case.
 */
enum { STACKCOPY_MAX = 256 << 10, STACKCOPY_FIRST = 6 << 10 };
_must_check_ int stackcopy_take(struct stackcopy *stack, pid_t tid, uintptr_t sp, uintptr_t end,
				size_t len);
void stackcopy_done(struct stackcopy *stack);
