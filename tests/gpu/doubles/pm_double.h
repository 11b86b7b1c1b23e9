/* SPDX-License-Identifier: Apache-2.0 */
/* What a test tells and asks the double of libcupti's PM sampling (libcupti_target.c). */
#pragma once

#include "base/base.h"

struct pm_double {
	/* Told. A status other than 0 is what the call returns. */
	const char *chip; /* one of libcupti_host.c's */
	int initialize, availability, enable, configure, start, decode, sample;
	uint32_t version; /* of the interface; from the start 13.0's */
	int64_t clock_ns; /* of the device; samples are made up to here */
	int overflows;	  /* so many decodings find one */
	bool endless;	  /* never at the end of records */
	bool no_number;	  /* the first metric's values are NaN */

	/* Asked. */
	int initialized, enabled, running, decodings;
	uint64_t interval;
	int trigger;
	size_t configured_bytes; /* the size that the latest configuration told */
};

typedef struct pm_double *pm_double_fn(void); /* double_pm() */
