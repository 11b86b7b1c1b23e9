/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `analyze` on dumps of a job that hangs (read/dumps/dumps.h) instead of traces: which of the given
 * files are dumps, and the report that the stage `hang` makes of them.
 */
#pragma once

#include "cmd/cmd.h"
#include "model/report.h"
#include "read/dumps/dumps.h"

/*
 * Lists the dumps among the files and folders. *ret_other: a file that may be a trace, to be freed;
 * NULL: there is none. Returns how many dumps, or -ENOMEM.
 */
_must_check_ int hangfiles_find(char *const *paths, size_t cnt, path_list *out, char **ret_other);

/*
 * Reads and judges the files. world_size: 0 as the dumps say. Files that can't be read are said on
 * stderr and are failures of the report. The report points into dumps, which is initialized by the
 * caller. Returns 0, or -errno with a line in err; report_done() on success only.
 */
_must_check_ int hangfiles_report(const path_list *paths, int world_size, struct dumps *dumps,
				  struct report *ret, struct err *err);
