/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/cupti/cupti_capture.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS (2 * NSEC_PER_MSEC)

static const struct {
	uint16_t call;
	bool begins;
} calls[] = {
	{ CUPTI_DRIVER_BEGIN_CAPTURE, true },
	{ CUPTI_DRIVER_BEGIN_CAPTURE_PTSZ, true },
	{ CUPTI_DRIVER_BEGIN_CAPTURE_V2, true },
	{ CUPTI_DRIVER_BEGIN_CAPTURE_V2_PTSZ, true },
	{ CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH, true },
	{ CUPTI_DRIVER_BEGIN_CAPTURE_TO_GRAPH_PTSZ, true },
	{ CUPTI_DRIVER_END_CAPTURE, false },
	{ CUPTI_DRIVER_END_CAPTURE_PTSZ, false },
};

int capture_relax(const struct cuda_functions *cuda)
{
	int mode = CUDA_CAPTURE_RELAXED;

	return cuda->capture_mode != NULL && cuda->capture_mode(&mode) == 0 ? mode : -1;
}

void capture_restore(const struct cuda_functions *cuda, int mode)
{
	if (mode >= 0)
		(void)cuda->capture_mode(&mode);
}

void capture_watch(struct capture *capture, const struct cupti_functions *api, void *subscriber)
{
	atomic_store(&capture->cnt, 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		(void)api->enable_callback(1, subscriber, CUPTI_DOMAIN_DRIVER, calls[i].call);
}

/* Not below 0: a capture that began before the attach may end. */
static void end_one(struct capture *capture)
{
	uint32_t cnt = atomic_load(&capture->cnt);

	while (cnt > 0 && !atomic_compare_exchange_weak(&capture->cnt, &cnt, cnt - 1))
		;
}

/* It goes on from before the call that begins it, if that succeeds, to behind the one that ends it. */
void capture_note(struct capture *capture, uint32_t call, const struct cupti_callback_data *at)
{
	bool failed = at->site == CUPTI_SITE_EXIT && at->result != NULL && *at->result != 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].call != call)
			continue;
		if (calls[i].begins && at->site != CUPTI_SITE_EXIT)
			atomic_fetch_add(&capture->cnt, 1);
		else if (at->site == CUPTI_SITE_EXIT && (failed || !calls[i].begins))
			end_one(capture);
		return;
	}
}

bool capture_goes_on(const struct capture *capture)
{
	return atomic_load(&capture->cnt) > 0;
}

int capture_wait(struct capture *capture, int64_t timeout_ns)
{
	int64_t limit_ns = clock_mono_ns() + timeout_ns;
	struct timespec look = { .tv_nsec = LOOK_NS };
	uint32_t cnt;

	while ((cnt = atomic_load(&capture->cnt)) > 0) {
		if (clock_mono_ns() > limit_ns) {
			atomic_store(&capture->cnt, 0);
			return -EAGAIN;
		}
		/* Polls with sleeps, so that capturing threads need not wake it. */
		(void)syscall(SYS_futex, &capture->cnt, FUTEX_WAIT_PRIVATE, cnt, &look, NULL, 0);
	}
	return 0;
}
