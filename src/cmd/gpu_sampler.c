/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker gpu-sampler: samples GPU counters for jobs without the permission. */
#include "cmd/cmd.h"
#include "host/counters/cuptipath.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct sampler_args {
	const char *cupti;
	bool window;
};

#define FIELD(field) OPTION_FIELD(struct sampler_args, field)

static const struct option_row rows[] = {
	{ .name = "cupti",
	  .argument = "PATH",
	  FIELD(cupti),
	  .help = "libcupti of CUDA 12.6 or later",
	  .preset = "$PERFTRACKER_CUPTI, else found by the loader, in the pip wheel of the first "
		    "Python on PATH, or in /usr/local/cuda",
	  .more = "The libcupti of CUDA 13 needs a driver of CUDA 13 (580 or later) and is "
		  "preferred there; with an older driver one of CUDA 12 is used." },
	{ .name = "window",
	  FIELD(window),
	  .help = "sample from the start until standard input is closed",
	  .more = "Removes DIR at the end. `perftracker run` starts the sampler this way." },
};

/* Only a warning: a driver may be installed later. */
static void warn_without_cuda(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (cuda == NULL)
		(void)fprintf(
			stderr,
			"perftracker: gpu-sampler: no libcuda.so.1: nothing can be sampled\n");
	else
		(void)dlclose(cuda);
}

/* window: sampling ends with standard input; else it starts on request and never ends. */
static int sample(const char *dir, bool window)
{
	struct gpusampler_options options = { .dir = dir,
					      .stop_fd = window ? STDIN_FILENO : -1,
					      .silent_ms = GPUSAMPLER_SILENT_MS,
					      .again_ns = GPUSAMPLER_AGAIN_NS,
					      .longest_ns = GPUSAMPLER_LONGEST_NS,
					      .rest_ns = GPUSAMPLER_REST_NS };
	enum gpusampler_end end;
	char note[PATH_MAX];
	struct err err = { "" };

	if (gpusampler_note(window ? NULL : dir, note, sizeof(note), &err) < 0)
		return cmd_fail("%s", err.text);
	options.note = note;
	if (!window)
		warn_without_cuda();
	end = gpusampler_run(&options, &err);
	if (end == GPUSAMPLER_NO_START)
		return cmd_fail("%s", err.text);
	return window ? (int)end : EXIT_DONE;
}

static int gpu_sampler_main(const struct command *command, int argc, char **argv)
{
	struct sampler_args a = { 0 };
	int first, status = optiontable_parse(command, argc, argv, &a, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (first + 1 != argc)
		return cmd_usage_error(command->name, "expected one folder");
	if (a.cupti != NULL)
		(void)setenv(CUPTIPATH_ENV, a.cupti, 1);
	return sample(argv[first], a.window);
}

const struct command cmd_gpu_sampler = {
	.name = "gpu-sampler",
	.summary = "read GPU counters for containers that may not",
	.usage = "[OPTION]... DIR\n",
	.about =
		"Samples the hardware counters of this host's NVIDIA GPUs 10000 times a second while "
		"a job requests them, and writes them to DIR: means of 10 ms, and every sample of the "
		"counters that are matched with kernels.\n"
		"Runs in a privileged container beside the job's container, because the driver gives "
		"these counters to administrators only. Both containers mount DIR; the job is started "
		"with `perftracker run --gpu-samples DIR`. Needs libcupti of CUDA 12.6 or later. Runs "
		"until SIGTERM.\n"
		"A job that may read the counters does not need this command: with `perftracker run "
		"--gpu-samples own` it starts a sampler for each window.\n"
		"On GPUs before Hopper, DCGM may hold the counters. They are then taken with `dcgmi "
		"profile --pause` and returned with `dcgmi profile --resume`, after 2 minutes at most.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker gpu-sampler /shared/gpus\n",
	.run = gpu_sampler_main,
};
