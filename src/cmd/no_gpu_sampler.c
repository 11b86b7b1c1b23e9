/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of gpu_sampler.c by -Dgpu_counters=false. */
#include "cmd/cmd.h"

#include <stdio.h>

static int refuse(const struct command *command, _unused_ int argc, _unused_ char **argv)
{
	(void)fprintf(stderr, "perftracker %s: not part of this build (-Dgpu_counters=false)\n",
		      command->name);
	return EXIT_USAGE;
}

const struct command cmd_gpu_sampler = {
	.name = "gpu-sampler",
	.summary = "read GPU counters for containers that may not",
	.run = refuse,
};
