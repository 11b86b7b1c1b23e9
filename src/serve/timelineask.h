/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a report, of what its folder keeps: `perftracker timeline --report` as a child (childtext.h). A
 * part of it for pages and programs, or all of it as a file for Perfetto.
 */
#pragma once

#include "base/str.h"
#include "serve/routes.h"

#define TIMELINE_US_MAX UINT64_C(1000000000000) /* of a moment in a query: eleven days */
#define TIMELINE_TRACE_BYTES_MAX ((size_t)48 << 20)
#define TIMELINE_TRACE_ENTRIES 2u
#define TIMELINE_COLUMNS_PRESET "200"

/* What the query asks for. */
struct timelineask {
	uint64_t from_us, to_us; /* to_us 0: as the command chooses */
	const char *ranks;	 /* borrowed from the query; NULL: all */
};

/* Returns 0 or -EINVAL with a line in err. */
_must_check_ int timelineask_read(struct call *call, struct timelineask *ret);

/*
 * Asks for that part of the timeline of the report that the path names, with so many columns. Returns the state
 * of childtext_ask() with the JSON in body and messages in why; or -errno with a line in err, -ENODATA: the folder of
 * the report is not here.
 */
_must_check_ int timelineask_part(struct call *call, const struct timelineask *ask,
				  const char *columns, struct str *body, struct str *why);

/* The same for the whole timeline as a compressed trace. */
_must_check_ int timelineask_trace(struct call *call, struct str *body, struct str *why);
