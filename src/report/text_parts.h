/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the text report, shared by text.c and text_head.c. */
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
