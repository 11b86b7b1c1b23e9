/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that a caller would have got had we not exported one of its name. A process may
 * have two versions of a library, so that this depends on the library that calls: it gets what it
 * was linked to, or what stands before that in the order of the dynamic linker and has the same
 * version; else the next behind us; else that of a library of a known name that is loaded.
 *
 * Looked for at the first call of a function from a library, and kept: only then is a lock of the
 * dynamic linker taken, which a thread that loads a library holds while that one's constructors
 * run. What is found stays loaded as long as the process lives; who calls may be unloaded (before
 * glibc 2.35, where nobody can be asked without a lock who is loaded at an address, it stays, too).
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define REALCALL_LIBRARIES 128u /* that call; later ones get what the first got */

/* Index 0: of code that is in no library. What is set never changes. */
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
 * site: an address in what calls it, as __builtin_return_address(0), or in what it is asked for.
 * NULL: there is none.
 */
void *realcall_find(struct realcall *real, const void *site);
