/* SPDX-License-Identifier: Apache-2.0 */
/* The part of hostd that starts the host's gpuwatch and reports its state. */
#include "base/log.h"
#include "live/hostd/hostd_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * "own": the agent's sampler, with a folder beside the socket; else the folder of a shared
 * sampler. Off by default: the sampler may pause DCGM, which serves the whole host.
 */
struct gpuwatch *hostd_start_gpuwatch(struct hostd *hostd)
{
	const struct run_options *options = hostd->setup.options;
	const char *from = options->gpu_samples != NULL ? options->gpu_samples : "none";
	struct gpuwatch_setup setup = { .open = gpuhw_open,
					.slow_ms = GPUWATCH_SLOW_MS,
					.fast_ms = GPUWATCH_FAST_MS,
					.recover = true };

	(void)snprintf(hostd->gpu_dir, sizeof(hostd->gpu_dir), "%s.gpus", hostd->setup.socket_path);
	if (strcmp(from, "own") == 0)
		setup.feed = (struct gpufeed_setup){ .dir = hostd->gpu_dir,
						     .program = options->program };
	else if (strcmp(from, "none") != 0)
		setup.feed = (struct gpufeed_setup){ .dir = from, .shared = true };
	return gpuwatch_start(&setup);
}

void hostd_report_gpus(struct hostd *hostd, int64_t now_ns)
{
	struct gpuwatch_state state;

	if (now_ns - hostd->gpus_reported_ns < GPUWATCH_SLOW_MS * NSEC_PER_MSEC)
		return;
	hostd->gpus_reported_ns = now_ns;
	gpuwatch_state(hostd->gpuwatch, &state);
	if (state.crashed + state.hung > hostd->sampler_faults)
		log_line(
			LOG_WARNING,
			"event=gpu-sampler-ended crashed=%" PRIu32 " killed=%" PRIu32
			" effect=\"GPU counters come from the driver, ten times a second or less\"",
			state.crashed, state.hung);
	hostd->sampler_faults = state.crashed + state.hung;
	if (hostd->setup.metrics != NULL)
		metrics_host_gpus(hostd->setup.metrics, &state);
}

void hostd_report_gpu_faults(struct hostd *hostd)
{
	uint32_t device, number;

	while (gpuwatch_next_fault(hostd->gpuwatch, &device, &number)) {
		log_line(LOG_WARNING, "event=gpu-fault gpu=%" PRIu32 " number=%" PRIu32, device,
			 number);
		if (hostd->setup.metrics != NULL)
			metrics_host_gpu_fault(hostd->setup.metrics, device, number);
	}
}
