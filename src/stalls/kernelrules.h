/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel stack says of why a thread is blocked, or busy in the kernel: tables of function
 * names. Stacks are texts, innermost first, with '<' between names (stallrecording.h). Names change
 * between kernels: those of 4.18 to 6.18 are in the tables; one that is not there is UNKNOWN, never a
 * guess.
 */
#pragma once

#include "model/stalls/stallverdict.h"

/*
 * Of a thread that left the CPU by its own call, in that state ('-': unknown). What no rule knows is
 * STALL_UNKNOWN if it cannot be interrupted (D), else STALL_UNKNOWN_WAIT: then the program asked for
 * it as a rule.
 */
enum stall_class kernelrules_blocked(const char *chain, char state);

/* Of a thread on the CPU. STALL_UNKNOWN: nothing unusual. */
enum stall_class kernelrules_busy(const char *chain);

/* Whether an interrupt or timer woke the thread: then the process that it interrupted is innocent. */
bool kernelrules_interrupt(const char *chain);

/*
 * What the thread asked the kernel for: the innermost function that is neither of the scheduler nor
 * of a lock. "" without one.
 */
void kernelrules_function(const char *chain, char ret[static STALL_FUNCTION_BYTES]);

/*
 * What a process did that held the memory map of another one, such as smap_gather_stats. "": the
 * stack does not say. *ret_weight: how telling the name is; 0: none.
 */
void kernelrules_holder(const char *chain, char ret[static STALL_FUNCTION_BYTES],
			uint32_t *ret_weight);

/* Whether one of the names of the stack begins with the word. */
bool kernelrules_has(const char *chain, const char *word);
