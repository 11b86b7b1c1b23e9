/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugin for Slurm changes in the environment of a task, so that its training processes
 * find the hook and ask hostd. A pure decision: spank.c reads and writes the environment.
 * Where hostd's socket is missing nothing is changed: a host without PerfTracker runs jobs as before.
 * Source: slurm.schedmd.com/spank.html; live/fleet (which variables the hook and hostd read).
 */
#pragma once

#include "base/base.h"

#define TASKENV_VALUE_MAX 4096u
#define TASKENV_CHANGES_MAX 3u

/* Lines of plugstack.conf: `all`, `hook=FOLDER`, `hostd=SOCKET`. Texts are borrowed. */
struct taskenv_settings {
	bool all; /* also tasks whose user did not ask */
	const char *hook, *hostd;
};

enum taskenv_choice { TASKENV_UNSAID, TASKENV_YES, TASKENV_NO };

struct taskenv_change {
	const char *name;
	char value[TASKENV_VALUE_MAX];
};

struct taskenv_changes {
	struct taskenv_change list[TASKENV_CHANGES_MAX];
	size_t cnt;
};

/* Defaults where a word is missing. Returns NULL, or the first word that is not known. */
const char *taskenv_parse_words(int cnt, const char *const *words, struct taskenv_settings *ret);

/* Of `--perftracker[=yes|no]`; NULL: without a value, which is yes. Returns 0 or -EINVAL. */
_must_check_ int taskenv_parse_choice(const char *text, enum taskenv_choice *ret);

/*
 * own: the task's PERFTRACKER; path: its PYTHONPATH; hostd: its PERFTRACKER_HOSTD; NULL: not set.
 * A PYTHONPATH that would become longer than a value may be is not changed.
 */
void taskenv_decide(const struct taskenv_settings *settings, enum taskenv_choice choice,
		    const char *own, const char *path, const char *hostd,
		    struct taskenv_changes *ret);
