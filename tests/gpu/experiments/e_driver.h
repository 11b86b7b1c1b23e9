/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver for the programs of experiments: found at run time, one context, one stream
 * and two kernels: an empty one, and one that lasts as long as its argument says. No setting of
 * the device is touched. With DOUBLE_CUDA set it is a double's (doubles/double.h), which
 * shows that a program runs, and nothing of a card.
 */
#pragma once

#include "base/base.h"

#define DRIVER_WHY 256

struct driver;

/* Functions that only some programs need; NULL on a double. Results are CUDA's. */
struct driver_functions {
	int (*begin_capture)(void *stream, int mode);
	int (*end_capture)(void *stream, void **ret);
	int (*instantiate)(void **ret, void *graph, unsigned long long flags);
	int (*graph_launch)(void *graph, void *stream);
	int (*is_capturing)(void *stream, int *ret);
	int (*event_create)(void **ret, unsigned flags);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_elapsed)(float *ret_ms, void *from, void *to);
	int (*alloc)(uint64_t *ret, size_t bytes);
	int (*alloc_host)(void **ret, size_t bytes);
	int (*copy_to)(uint64_t to, const void *from, size_t bytes, void *stream);
	int (*copy_from)(void *to, uint64_t from, size_t bytes, void *stream);
	int (*set)(uint64_t at, unsigned value, size_t cnt, void *stream);
};

/*
 * Returns 0, or the exit status of the program with the reason in why: 77 without a driver
 * or device, 2 for a call that failed. ret_init_ns: time of cuInit; may be NULL.
 */
_must_check_ int driver_open(struct driver **ret, int64_t *ret_init_ns,
			     char why[static DRIVER_WHY]);

bool driver_is_double(const struct driver *driver);
int driver_version(const struct driver *driver); /* 13000 is 13.0 */
const struct driver_functions *driver_functions(const struct driver *driver);
void *driver_stream(const struct driver *driver);

/* Results are CUDA's: 0 is success. */
int driver_launch(struct driver *driver);	       /* the kernel that does nothing */
int driver_spin(struct driver *driver, int64_t ns);    /* the one that lasts */
int driver_replay(struct driver *driver, void *graph); /* on a double `graph` is ignored */
int driver_synchronize(struct driver *driver);

/* A graph of cnt empty kernels in a row, instantiated. On a double only its size is kept. */
int driver_capture(struct driver *driver, unsigned cnt, void **ret);
