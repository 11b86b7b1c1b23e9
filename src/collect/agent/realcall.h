/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that a caller would have got had we not exported one of its name: behind us in the
 * order of the dynamic linker; else where the caller's library has it from, as Python loads
 * libraries for itself, and a process may have two versions of one; else in a library of that name
 * that is loaded. Looked for at the first call from each place, and kept.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#define REALCALL_SITES 16u /* places that call; others are looked up each time */

/* A function, as it is known to each place that calls it. A place never changes. */
struct realcall {
	const char *symbol;
	const char *const *libraries; /* SONAMEs; NULL ends them */
	struct {
		_Atomic uintptr_t site;
		void *_Atomic found;
	} sites[REALCALL_SITES];
};

#define REALCALL(name, library)   \
	{                         \
		name, library,    \
		{                 \
			{         \
				0 \
			}         \
		}                 \
	}

/* Rare. NULL: there is none. What is found stays loaded as long as the process lives. */
void *realcall_look_up(struct realcall *real, const void *site);

/* site: an address in what calls it, as __builtin_return_address(0). */
static inline void *realcall_find(struct realcall *real, const void *site)
{
	for (uint32_t i = 0; i < REALCALL_SITES; i++) {
		uintptr_t known = atomic_load_explicit(&real->sites[i].site, memory_order_acquire);

		if (known == (uintptr_t)site)
			return atomic_load_explicit(&real->sites[i].found, memory_order_relaxed);
		if (known == 0)
			break;
	}
	return realcall_look_up(real, site);
}
