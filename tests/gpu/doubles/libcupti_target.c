/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of libcupti that samples a device's counters: a sample at each
 * interval up to the time that the test sets, with shares of 40 % and 60 % by turns and
 * rates of 1e9. Calls out of order are refused (7), others' sizes too (1).
 *
 * Words in PM_DOUBLE_DO change its behavior:
 *   live        samples are made up to now
 *   hang crash  at the third decoding; one that hangs makes the file PM_DOUBLE_SIGN first
 *   refuse      not without privileges (35)
 *   overflow    the first decoding finds one
 *   held        the counters are another tool's while the file PM_DOUBLE_HELD exists (7)
 * PM_DOUBLE_CHIP is the chip.
 */
#include "host/counters/pmsampling_target_abi.h"
#include "pm_double.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define INVALID 1
#define AVAILABILITY_BYTES 16
#define CYCLES_A_US 1500

#define DEVICES 4

struct pm_object {
	bool enabled, running;
	uint64_t next_ns, turn;
};

struct record {
	uint64_t start, end, turn;
};

struct image {
	uint64_t cnt;
	struct record records[];
};

static struct pm_double state = { .chip = "EASY", .version = 130001 };
static struct pm_object objects[DEVICES];
static uint32_t image_samples;

EXPORT struct pm_double *double_pm(void);
struct pm_double *double_pm(void)
{
	return &state;
}

static bool does(const char *word)
{
	const char *words = getenv("PM_DOUBLE_DO");

	return words != NULL && strstr(words, word) != NULL;
}

static uint64_t device_now_ns(void)
{
	struct timespec now;

	if (!does("live"))
		return (uint64_t)state.clock_ns;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static bool is_held(void)
{
	const char *path = getenv("PM_DOUBLE_HELD");

	return does("held") && path != NULL && access(path, F_OK) == 0;
}

static void hang(void)
{
	const char *sign = getenv("PM_DOUBLE_SIGN");
	int fd = sign != NULL ? open(sign, O_WRONLY | O_CREAT, 0600) : -1;

	if (fd >= 0)
		(void)close(fd);
	for (;;)
		(void)pause();
}

static bool is_ours(const struct pm_object *object)
{
	return object >= objects && object < objects + DEVICES && object->enabled;
}

#define CALL(name, type)                  \
	EXPORT int name(struct type *in); \
	int name(struct type *in)

#define REFUSE_UNLESS(condition)        \
	do {                            \
		if (!(condition))       \
			return INVALID; \
	} while (0)

EXPORT int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
	*version = state.version;
	return PM_OK;
}

CALL(cuptiProfilerInitialize, pm_initialize)
{
	REFUSE_UNLESS(in->size == sizeof(*in));
	if (state.initialize == PM_OK)
		state.initialized++;
	return state.initialize;
}

CALL(cuptiProfilerDeInitialize, pm_initialize)
{
	REFUSE_UNLESS(in->size == sizeof(*in));
	state.initialized--;
	return PM_OK;
}

CALL(cuptiDeviceGetChipName, pm_chip_name)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && in->device < DEVICES);
	in->name = getenv("PM_DOUBLE_CHIP") != NULL ? getenv("PM_DOUBLE_CHIP") : state.chip;
	return PM_OK;
}

CALL(cuptiPmSamplingGetCounterAvailability, pm_availability)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && state.initialized == 1 && in->device < DEVICES);
	if (objects[in->device].enabled || is_held())
		return PM_INVALID_OPERATION;
	if (in->image != NULL)
		memset(in->image, 1, in->bytes);
	in->bytes = AVAILABILITY_BYTES;
	return state.availability;
}

CALL(cuptiPmSamplingEnable, pm_enable)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && in->device < DEVICES);
	if (objects[in->device].enabled)
		return PM_INVALID_OPERATION;
	if (state.enable != PM_OK || does("refuse"))
		return state.enable != PM_OK ? state.enable : PM_NO_PERMISSION;
	state.enabled++;
	in->object = &objects[in->device];
	in->object->enabled = true;
	return PM_OK;
}

CALL(cuptiPmSamplingDisable, pm_order)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && is_ours(in->object));
	state.enabled--; /* state.running still counts one that was not stopped */
	in->object->enabled = false;
	return PM_OK;
}

/* CUDA 12.6's knows the shorter struct alone, later ones both. */
static bool is_known_configuration(const struct pm_configure *in)
{
	return in->size == PM_SIZE(pm_configure, trigger) ||
	       (state.version > PM_NO_APPEND && in->size == sizeof(*in));
}

CALL(cuptiPmSamplingSetConfig, pm_configure)
{
	REFUSE_UNLESS(is_known_configuration(in) && is_ours(in->object) && in->config != NULL);
	REFUSE_UNLESS(in->config[0] == 1 && in->buffer_bytes > 0);
	state.interval = in->interval;
	state.trigger = in->trigger;
	state.configured_bytes = in->size;
	return state.configure;
}

CALL(cuptiPmSamplingGetCounterDataSize, pm_image_size)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && in->cnt > 0 && in->names[in->cnt - 1] != NULL);
	image_samples = in->samples;
	in->bytes = sizeof(struct image) + in->samples * sizeof(struct record);
	return PM_OK;
}

CALL(cuptiPmSamplingCounterDataImageInitialize, pm_image_clear)
{
	REFUSE_UNLESS(in->size == sizeof(*in));
	memset(in->image, 0, in->bytes);
	return PM_OK;
}

CALL(cuptiPmSamplingStart, pm_order)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && is_ours(in->object) && state.interval > 0);
	if (state.start != PM_OK)
		return state.start;
	in->object->running = true;
	state.running++;
	in->object->next_ns = device_now_ns();
	return PM_OK;
}

CALL(cuptiPmSamplingStop, pm_order)
{
	REFUSE_UNLESS(in->size == sizeof(*in) && is_ours(in->object) && in->object->running);
	in->object->running = false;
	state.running--;
	return PM_OK;
}

static void make_records(struct pm_object *object, struct image *image)
{
	uint64_t now_ns = device_now_ns();
	uint64_t period_ns =
		state.trigger == PM_EVERY_NS ? state.interval : state.interval * 1000 / CYCLES_A_US;

	while (image->cnt < image_samples && object->next_ns + period_ns <= now_ns) {
		image->records[image->cnt++] =
			(struct record){ object->next_ns, object->next_ns + period_ns,
					 object->turn++ };
		object->next_ns += period_ns;
	}
}

CALL(cuptiPmSamplingDecodeData, pm_decode)
{
	struct image *image = (struct image *)(void *)in->image;

	REFUSE_UNLESS(in->size == PM_SIZE(pm_decode, overflow) && is_ours(in->object));
	REFUSE_UNLESS(image->cnt == 0);
	state.decodings++;
	if (state.decodings == 3 && does("hang"))
		hang();
	if (state.decodings == 3 && does("crash"))
		(void)raise(SIGSEGV);
	if (state.decode != PM_OK)
		return state.decode;
	make_records(in->object, image);
	in->stopped = state.endless || image->cnt == image_samples ? PM_STOP_FULL : PM_STOP_END;
	if (state.decodings == 1 && does("overflow"))
		state.overflows++;
	in->overflow = state.overflows > 0;
	state.overflows -= in->overflow;
	return PM_OK;
}

CALL(cuptiPmSamplingGetCounterDataInfo, pm_image_info)
{
	const struct image *image = (const struct image *)(const void *)in->image;

	REFUSE_UNLESS(in->size == sizeof(*in));
	in->total = image_samples;
	in->populated = in->completed = image->cnt;
	return PM_OK;
}

CALL(cuptiPmSamplingCounterDataGetSampleInfo, pm_sample_info)
{
	const struct image *image = (const struct image *)(const void *)in->image;

	REFUSE_UNLESS(in->size == sizeof(*in) && is_ours(in->object) && in->idx < image->cnt);
	in->start = image->records[in->idx].start;
	in->end = image->records[in->idx].end;
	return state.sample;
}

CALL(cuptiProfilerHostEvaluateToGpuValues, pm_evaluate)
{
	const struct image *image = (const struct image *)(const void *)in->image;

	REFUSE_UNLESS(in->size == sizeof(*in) && in->host != NULL && in->idx < image->cnt);
	for (size_t i = 0; i < in->cnt; i++) {
		bool share = strstr(in->names[i], ".pct_of_peak") != NULL;
		double turned = image->records[in->idx].turn % 2 != 0 ? 60 : 40;

		in->values[i] = share ? turned : 1e9;
	}
	if (state.no_number)
		in->values[0] = nan("");
	return PM_OK;
}
