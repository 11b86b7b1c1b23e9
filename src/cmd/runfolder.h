/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders that `perftracker run` writes (live/run/outdir.h), as arguments of other commands:
 * the word "latest", the folder of all runs, or the folder of one.
 */
#pragma once

#include "base/err.h"

#include <limits.h>

/*
 * The folder that word means: "latest", where nothing has that name, is perftracker-out/latest, and
 * a folder with a link "latest" is what that links to; other words stay. Returns word or ret.
 */
const char *runfolder_resolve(const char *word, char ret[static PATH_MAX]);

/* Whether a run has written here. */
bool runfolder_is(const char *path);

/*
 * The folder of a run's inputs to analyze: the fingerprints of its latest profile, else its flight
 * recorders. Returns 0, or -ENOENT with a line in err.
 */
_must_check_ int runfolder_inputs(const char *path, char ret[static PATH_MAX], struct err *err);
