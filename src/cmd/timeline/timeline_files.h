/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of a timeline: flight recorders and sidecars. */
#pragma once

#include "base/err.h"
#include "cmd/cmd.h"

bool timeline_is_folder(const char *path);

/*
 * Appends the flight recorders that words[cnt] name: files, and the files in folders. A
 * running job that writes to such a folder is asked to save its newest records first. Returns
 * 0 or -errno with a line in err.
 */
_must_check_ int timeline_find_flights(char *const *words, int cnt, path_list *ret,
				       struct err *err);

/* The same, without asking a running job. */
_must_check_ int timeline_list_flights(char *const *words, int cnt, path_list *ret,
				       struct err *err);

/*
 * Appends the sidecars beside flights, and those of the traces that a job kept in the folders
 * among words[cnt]. Returns 0 or -ENOMEM.
 */
_must_check_ int timeline_find_sidecars(char *const *words, int cnt, const path_list *flights,
					path_list *ret);
