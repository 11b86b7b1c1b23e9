/* SPDX-License-Identifier: Apache-2.0 */
/* The part of hostd that starts the host's gpuwatch and reports its state. */
#include "base/log.h"
#include "base/str.h"
#include "live/hostd/hostd_parts.h"
#include "model/rankset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

static int compare_ints(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* CUDA permits it, and a job that forgets to choose a device for each rank does it. */
static void tell_shared(struct hostd *hostd, uint32_t device)
{
	_cleanup_(str_done) struct str ranks = { 0 };
	int sharing[GPUWATCH_USERS_MAX];
	size_t cnt = 0;

	vec_foreach(c, &hostd->clients) {
		const struct worker *worker = &(*c)->worker;

		if ((*c)->is_worker && worker->rank >= 0 && cnt < ARRAY_SIZE(sharing) &&
		    gpuwatch_uses(hostd->gpuwatch, worker->pid, device))
			sharing[cnt++] = worker->rank;
	}
	if (cnt < 2)
		return;
	hostd->gpus_shared |= 1ULL << device;
	qsort(sharing, cnt, sizeof(*sharing), compare_ints);
	rankset_format(&ranks, sharing, cnt);
	log_line(LOG_WARNING,
		 "event=gpu-shared gpu=%" PRIu32 " ranks=%s effect=\"each has it for a part of the "
		 "time\" remedy=\"a GPU for each rank: torch.cuda.set_device(local_rank)\"",
		 device, str_borrow(&ranks));
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
	for (uint32_t i = 0; i < state.device_cnt; i++) {
		if ((hostd->gpus_shared >> i & 1) == 0)
			tell_shared(hostd, i);
	}
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
