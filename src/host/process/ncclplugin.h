/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a job already has a profiler plugin for NCCL outside the environment. NCCL loads one
 * plugin. The variable NCCL_PROFILER_PLUGIN overrides the user's configuration files and NCCL's
 * default plugin, so setting it would replace these.
 * Source: NCCL's param.cc (initEnv), plugin_open.cc, profiler.cc.
 */
#pragma once

#include "base/base.h"

#include <limits.h>

/* root is the prefix of the other paths, too, as of /etc and /lib. */
struct ncclplugin_places {
	const char *root;	  /* "": this machine */
	const char *home;	  /* of the user */
	const char *conf;	  /* NCCL_CONF_FILE; NULL: not set */
	const char *library_path; /* LD_LIBRARY_PATH; NULL: not set */
};

struct ncclplugin {
	char name[PATH_MAX];  /* as it is set: a path, a word; or where the library is */
	char place[PATH_MAX]; /* the file with the setting; "": name is a path */
	bool is_set;	      /* false: NCCL takes it by itself */
};

/*
 * Looks for a setting in nccl.conf, then for libnccl-profiler.so where the loader would find it;
 * paths in ret are without the root. False: no plugin. Not detected: a network plugin that is also
 * a profiler, which NCCL tries last; a run path of libnccl.so itself.
 */
bool ncclplugin_find(const struct ncclplugin_places *places, struct ncclplugin *ret);
