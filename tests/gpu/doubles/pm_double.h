/* SPDX-License-Identifier: Apache-2.0 */
/* Settings and counts of the double of libcupti's PM sampling (libcupti_target.c). */
#pragma once

#include "base/base.h"

struct pm_double {
	/* Set by the test. A status other than 0 is returned by the call. */
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
	size_t configured_bytes; /* the size in the latest configuration */
};

typedef struct pm_double *pm_double_fn(void); /* double_pm() */
