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

struct attach_nccl_places {
	const char *root;	  /* "" but for tests */
	const char *home;	  /* of the user */
	const char *conf;	  /* NCCL_CONF_FILE; NULL: not set */
	const char *library_path; /* LD_LIBRARY_PATH; NULL: not set */
};

/*
 * Looks for a setting in nccl.conf, then for libnccl-profiler.so where the loader would find it.
 * Writes what and where ("inspector (/etc/nccl.conf)") into ret; false: there is none. Not seen: a
 * network plugin that is a profiler, too, which NCCL asks last; a run path of libnccl.so itself.
 */
bool attach_nccl_find(const struct attach_nccl_places *places, char ret[static PATH_MAX]);
