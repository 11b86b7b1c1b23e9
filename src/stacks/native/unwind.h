/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stacks from registers and a copy of the stack, by the unwind information of the ELF files
 * (.eh_frame): libdw parses it, the rules are applied here and kept by address, so that hundreds of
 * threads at the same place cost one parse. Some registers may be unknown: of a blocked thread the
 * kernel tells the program counter and the stack pointer only.
 */
#pragma once

#include "base/idmap.h"
#include "stacks/native/modules.h"
#include "stacks/native/registers.h"

enum unwind_end {
	UNWIND_COMPLETE,    /* at the function in which the thread began */
	UNWIND_CUT,	    /* deeper than the caller's array */
	UNWIND_NO_CODE,	    /* an address outside all code */
	UNWIND_NO_RULES,    /* code without unwind information */
	UNWIND_NO_REGISTER, /* a rule needs a register that is unknown */
	UNWIND_NO_MEMORY,   /* a rule leads out of the copied stack */
	UNWIND_LOOP,	    /* a caller's frame is not above */
};

/* Whether registers and a copy of the whole stack would have led further. */
static inline bool unwind_wants_stop(enum unwind_end end)
{
	return end == UNWIND_NO_REGISTER || end == UNWIND_NO_MEMORY || end == UNWIND_LOOP ||
	       end == UNWIND_NO_CODE;
}

struct unwind_row;

struct unwinder {
	struct modules *modules; /* borrowed */
	struct idmap by_pc;	 /* index in rows */
	VEC(struct unwind_row) rows;
};

void unwinder_init(struct unwinder *unwinder, struct modules *modules);
void unwinder_done(struct unwinder *unwinder);

/*
 * Fills ret_pcs[cap], innermost first, with addresses inside the calling instructions, so that each
 * belongs to the function and line of the call. *ret_end is why it ended. Returns how many.
 */
size_t unwinder_walk(struct unwinder *unwinder, const struct registers *start,
		     struct stackcopy *stack, uintptr_t *ret_pcs, size_t cap,
		     enum unwind_end *ret_end);
