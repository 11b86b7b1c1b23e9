/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a window went, over all workers: the classes of the critical path, the
 * communication behind other work, the iterations one by one. From the report alone.
 */
#pragma once

#include "model/report.h"

/* One class: medians over the workers. */
struct breakdown_class {
	double ms, pct; /* per iteration; of the window */
	double most_pct;
	int most_rank; /* the worker with most of it */
};

struct breakdown {
	struct breakdown_class classes[CLASS_CNT];
	double hidden_ms;     /* communication behind other work, per iteration; NAN: not known */
	double *iteration_ms; /* of the i-th iterations, median over the workers that have one */
	size_t iteration_cnt; /* of the worker with most */
};

/* The caller frees ret with breakdown_done(). Returns 0 or -ENOMEM; without workers all is 0. */
_must_check_ int breakdown_init(struct breakdown *ret, const struct report *report);
void breakdown_done(struct breakdown *breakdown);

/* What a class is, in some words. */
const char *breakdown_class_words(enum event_class class);

/* "compute (kernels), 61 % on rank 3": beyond the number. */
void breakdown_phrase_class(struct str *out, const struct breakdown *breakdown,
			    const struct report *report, enum event_class class);

/* "215 ms, 218 ms, 240 ms"; of many: "20 of 215 ms to 240 ms, the 3rd is the longest". */
void breakdown_phrase_iterations(struct str *out, const struct breakdown *breakdown);
