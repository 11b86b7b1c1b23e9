/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attribute words, sizes and units that every file of PerfTracker uses.
 * Nothing here allocates, logs or touches the system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _must_check_ __attribute__((warn_unused_result))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _unused_ __attribute__((unused))
#define _noreturn_ __attribute__((noreturn))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Both arguments are evaluated once; they must have the same type. */
#define MIN(a, b)                                  \
	({                                         \
		__typeof__(a) _min_a = (a);        \
		__typeof__(b) _min_b = (b);        \
		_min_a < _min_b ? _min_a : _min_b; \
	})
#define MAX(a, b)                                  \
	({                                         \
		__typeof__(a) _max_a = (a);        \
		__typeof__(b) _max_b = (b);        \
		_max_a > _max_b ? _max_a : _max_b; \
	})

/* Moves a pointer out of a variable that a cleanup attribute would free. */
#define take_ptr(p)                         \
	({                                  \
		__typeof__(p) _taken = (p); \
		(p) = NULL;                 \
		_taken;                     \
	})

#define NSEC_PER_USEC 1000LL
#define NSEC_PER_MSEC 1000000LL
#define NSEC_PER_SEC 1000000000LL

static inline void free_ptr(void *pp)
{
	free(*(void **)pp);
}

/* Frees a heap pointer held in a local when it leaves its scope. */
#define _cleanup_free_ _cleanup_(free_ptr)
