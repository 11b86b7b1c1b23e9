/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment that makes a training process load the hook: where the
 * Python package and the agent library are, in a build tree and installed.
 */
#pragma once

#include "base/err.h"
#include "live/run/daemon.h"

#include <limits.h>

#define ATTACH_ENV_NCCL "NCCL_PROFILER_PLUGIN" /* the agent is one, too (agent/nccl) */
#define ATTACH_ENV_ROCM \
	"ROCP_TOOL_LIBRARIES" /* the agent is also a tool of AMD's rocprofiler-sdk */
#define ATTACH_ENV_TIMES \
	"PERFTRACKER_GPU_TIMES" /* "1": the agent counts and times calls of a GPU's libraries */
#define ATTACH_ENV_PYTHONPATH \
	"PERFTRACKER_PYTHONPATH" /* the package's folder, instead of searching it */

/*
 * Finds the agent library and the folder of the Python package that belong to program, the
 * path of this executable, unless the environment names others. Returns 0 or -ENOENT with a
 * line in err.
 */
_must_check_ int attach_find(const char *program, char agent[static PATH_MAX],
			     char package[static PATH_MAX], struct err *err);

/*
 * Sets PERFTRACKER_SOCKET, _AGENT and _DIR, and puts the package's directory in
 * front of PYTHONPATH, in this process's environment. program: path of this
 * executable. Returns 0, or -ENOENT or -ENOMEM with a line in err; then nothing
 * is set.
 */
_must_check_ int attach_environment(const char *program, const struct daemon_ready *ready,
				    struct err *err);

/*
 * The package's directory alone in front of PYTHONPATH, for a command without a daemon. Returns 0,
 * or -ENOENT or -ENOMEM with a line in err.
 */
_must_check_ int attach_python(const char *program, struct err *err);

/*
 * After attach_environment(): makes NCCL and ROCm load the agent as their plugin and tool,
 * unless the user has others (host/process/ncclplugin.h). Only on request: its cost has not been
 * measured on a GPU (docs/gpu-measurements.md).
 */
void attach_to_gpus(void);

/*
 * After attach_environment(): preloads the agent into all processes that the job starts, so
 * that it sees calls of a GPU's libraries. Only on request.
 */
void attach_to_gpu_calls(void);

/*
 * After attach_to_gpus(): whether NCCL's profiler plugin is another than the agent, which then
 * gets no records from NCCL. ret: that plugin and where it is configured.
 */
bool attach_other_plugin(char ret[static PATH_MAX]);
