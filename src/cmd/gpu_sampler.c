/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker gpu-sampler: reads GPUs' hardware counters for those who may not. */
#include "cmd/cmd.h"
#include "host/counters/cuptipath.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: perftracker gpu-sampler [--cupti PATH] DIR\n"
	"\n"
	"Samples the hardware counters of this host's NVIDIA GPUs, 10000 times a second, while\n"
	"somebody wants it, and puts them into DIR: means of 10 ms, and each sample of what kernels\n"
	"are joined with. For a privileged container beside the job's: the driver gives these\n"
	"counters to administrators only. Both mount DIR, and the job is started with\n"
	"'perftracker run --gpu-samples DIR'. Needs libcupti of CUDA 12.6 or later. Runs until\n"
	"SIGTERM.\n"
	"\n"
	"A job that may read the counters itself needs none of this: with\n"
	"'perftracker run --gpu-samples own' it samples by itself while a window is open.\n"
	"\n"
	"Counters that DCGM has (before Hopper) are taken by 'dcgmi profile --pause' meanwhile,\n"
	"and given back by '--resume'; at most 2 minutes at once.\n"
	"\n"
	"  perftracker gpu-sampler /shared/gpus\n"
	"\n"
	"  --cupti PATH       the library, when neither the loader nor the Python of PATH (pip's\n"
	"                     wheel) nor /usr/local/cuda has it; $PERFTRACKER_CUPTI otherwise\n"
	"  --window           until standard input is closed, from the beginning: as 'run'\n"
	"                     starts it\n"
	"  -h, --help         this text\n";

enum { OPT_CUPTI = 256, OPT_WINDOW };

static const struct option long_options[] = {
	{ "cupti", required_argument, NULL, OPT_CUPTI },
	{ "window", no_argument, NULL, OPT_WINDOW },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Returns 0, 1 when help was printed, or -EINVAL when it was said what is wrong. */
static int parse_options(int argc, char **argv, struct gpusampler_options *ret)
{
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			return 1;
		}
		if (option == OPT_CUPTI) {
			(void)setenv(CUPTIPATH_ENV, optarg, 1);
		} else if (option == OPT_WINDOW) {
			ret->stop_fd = STDIN_FILENO;
		} else {
			(void)cmd_try_help("gpu-sampler");
			return -EINVAL;
		}
	}
	if (optind + 1 != argc) {
		(void)cmd_usage_error("gpu-sampler", "expected one folder");
		return -EINVAL;
	}
	ret->dir = argv[optind];
	return 0;
}

/* A driver may come later; until then whoever wants samples waits in vain. */
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

int cmd_gpu_sampler(int argc, char **argv)
{
	struct gpusampler_options options = { .stop_fd = -1,
					      .silent_ms = GPUSAMPLER_SILENT_MS,
					      .again_ns = GPUSAMPLER_AGAIN_NS,
					      .longest_ns = GPUSAMPLER_LONGEST_NS,
					      .rest_ns = GPUSAMPLER_REST_NS };
	enum gpusampler_end end;
	char note[PATH_MAX];
	struct err err = { "" };
	bool standing;
	int ret = parse_options(argc, argv, &options);

	if (ret != 0)
		return ret < 0 ? EXIT_USAGE : EXIT_DONE;
	standing = options.stop_fd < 0;
	if (gpusampler_note(standing ? options.dir : NULL, note, sizeof(note), &err) < 0)
		return cmd_fail("%s", err.text);
	options.note = note;
	if (standing)
		warn_without_cuda();
	end = gpusampler_run(&options, &err);
	if (end == GPUSAMPLER_NO_START)
		return cmd_fail("%s", err.text);
	return standing ? EXIT_DONE : (int)end;
}
