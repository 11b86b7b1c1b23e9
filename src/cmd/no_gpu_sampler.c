/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of gpu_sampler.c by -Dgpu_counters=false. */
#include "cmd/cmd.h"

#include <stdio.h>

int cmd_gpu_sampler(_unused_ int argc, _unused_ char **argv)
{
	(void)fputs("perftracker gpu-sampler: not part of this build (-Dgpu_counters=false)\n",
		    stderr);
	return EXIT_USAGE;
}
