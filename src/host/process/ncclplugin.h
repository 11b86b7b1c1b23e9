/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a job has a profiler plugin of NCCL's already, beside what the environment says. NCCL
 * has one plugin. The variable NCCL_PROFILER_PLUGIN goes before the user's files of settings and
 * before the plugin that NCCL takes by itself, so that setting it would push these aside.
 * Source: NCCL's param.cc (initEnv), plugin_open.cc, profiler.cc.
 */
#pragma once

#include "base/base.h"

#include <limits.h>

/* root stands before the others, too, as before /etc and /lib. */
struct ncclplugin_places {
	const char *root;	  /* "": this machine */
	const char *home;	  /* of the user */
	const char *conf;	  /* NCCL_CONF_FILE; NULL: not set */
	const char *library_path; /* LD_LIBRARY_PATH; NULL: not set */
};

struct ncclplugin {
	char name[PATH_MAX];  /* as it is set: a path, a word; or where the library is */
	char place[PATH_MAX]; /* the file that says so; "": name is a path */
	bool is_set;	      /* false: NCCL takes it by itself */
};

/*
 * Looks for a setting in nccl.conf, then for libnccl-profiler.so where the loader would find it;
 * paths in ret are without the root. False: there is none. Not seen: a network plugin that is a
 * profiler, too, which NCCL asks last; a run path of libnccl.so itself.
 */
bool ncclplugin_find(const struct ncclplugin_places *places, struct ncclplugin *ret);
