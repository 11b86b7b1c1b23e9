/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a timeline is made of: flight recorders, and what was sampled beside them. */
#pragma once

#include "base/err.h"
#include "cmd/cmd.h"

bool timeline_is_folder(const char *path);

/*
 * Appends the flight recorders that words[cnt] name: files, and those of folders, in their
 * order. A job that still runs in such a folder is asked for its newest ones. Returns 0 or
 * -errno with a line in err.
 */
_must_check_ int timeline_find_flights(char *const *words, int cnt, path_list *ret,
				       struct err *err);

/*
 * Appends the sidecars beside flights, and those of the traces that a job kept in the folders
 * among words[cnt]. Returns 0 or -ENOMEM.
 */
_must_check_ int timeline_find_sidecars(char *const *words, int cnt, const path_list *flights,
					path_list *ret);
