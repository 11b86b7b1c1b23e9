/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a job that does not move: the stacks of all threads of its ranks and their children,
 * read twice, for the stage `hang`.
 */
#pragma once

#include "cmd/stacks/stackssample.h"
#include "model/report.h"
#include "stacks/sampling/jobprocs.h"

struct attachhang {
	struct stackslist list;
	struct stackssample before, now;
};

/*
 * still_ns: how long nothing moved. The report, whose arena is initialized, points into hang. Returns
 * 0 or -errno with a line in err; attachhang_done() in either case.
 */
_must_check_ int attachhang_make(struct attachhang *hang, const struct jobranks *ranks,
				 int64_t still_ns, struct report *report, struct err *err);
void attachhang_done(struct attachhang *hang);
