/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the function that a caller would be bound to without the agent's export of the same name. A
 * process may have two versions of a library, so this depends on the calling library: it gets the
 * function it was linked to, or one of the same version earlier in the dynamic linker's order; else
 * the next one after the agent; else that of a loaded library with a known name.
 *
 * Searched at the first call of a function from a library, and cached: only then is a lock of the
 * dynamic linker taken, which a thread that loads a library holds while constructors run. The found
 * library stays loaded for the life of the process; the calling one may be unloaded (before glibc
 * 2.35, without a lock-free lookup of an address's library, it stays, too).
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define REALCALL_LIBRARIES 128u /* calling libraries; later ones get the first one's function */

/* Index 0: code outside of libraries. Set fields never change. */
struct realcall {
	const char *symbol;
	const char *const *libraries; /* SONAMEs; NULL ends them */
	void *_Atomic found[REALCALL_LIBRARIES];
	void *_Atomic first;
};

#define REALCALL(name, names)                        \
	{                                            \
		.symbol = (name), .libraries = names \
	}

/*
 * site: an address in the caller, as __builtin_return_address(0), or in the kernel that is
 * launched. Returns NULL if there is none.
 */
void *realcall_find(struct realcall *real, const void *site);
