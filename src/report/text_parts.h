/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the text report, shared by text.c, text_head.c and text_use.c. */
#pragma once

#include "model/report.h"
#include "report/page.h"

#define LIST_MAX 8 /* notes, failures, absent sources, hosts */

struct text_writer {
	struct page page;
	const struct report *report;
	bool verbose;
};

/* The verdict, an empty line, and the facts of the job: who, when, where, what is missing. */
void text_head(struct text_writer *w);

/* How GPUs were used; without findings also kernels, calls, collectives and late ranks. */
void text_use(struct text_writer *w);
