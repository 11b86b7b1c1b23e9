/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/pmsampling_session.h"

#include "host/counters/pmsampling_parts.h"
#include "host/counters/pmsampling_target.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CUDA_SONAME "libcuda.so.1"
#define BUFFER_BYTES (64u << 20) /* of the device's records */
#define IMAGE_SAMPLES 1024u	 /* of one decoding: a tenth of a second at 10 kHz */
#define DECODES_A_DRAIN 8	 /* then the rest waits for the next */
#define DECODES_AT_END 64	 /* of a device that has stopped */
#define CHIP_BYTES 32
/* The clock from which rates of chips that report only cycles are computed. */
#define SYSTEM_CLOCK_HZ 1500000000u

/* Samples of the same time, added up. */
struct bucket {
	int64_t idx, end_ns;
	double sums[PM_KIND_CNT];
	uint32_t cnts[PM_KIND_CNT]; /* of sums */
	uint32_t cnt;
};

struct pm_session {
	const struct pm_library *library;
	struct gpucounters_setup setup;
	uint32_t device;
	struct pm_target target;
	uint32_t version; /* of the library's interface; 24: CUDA 12.6 */
	char chip[CHIP_BYTES];
	void *cuda;
	bool initialized, running;
	struct pm_plan plan;
	struct pm_object *object;
	uint8_t *image;
	size_t image_bytes;
	uint32_t hz;
	bool first; /* the first sample since a start is an outlier */
	/* The upper bound of the device clock's lag: the least one observed. */
	bool synchronized;
	int64_t offset_ns;
	int64_t taken_ns; /* the time of the latest that was handed on */
	struct bucket bucket;
	struct pm_counts counts;
};

static int say_status(const char *what, int status, char why[static GPUHW_WHY])
{
	switch (status) {
	case PM_NO_PERMISSION:
		(void)snprintf(why, GPUHW_WHY, "%s: needs CAP_SYS_ADMIN (CUPTI: 35)", what);
		return -EPERM;
	case PM_BUSY:
	case PM_INVALID_OPERATION:
		(void)snprintf(why, GPUHW_WHY, "%s: another tool has the counters (CUPTI: %d)",
			       what, status);
		return -EBUSY;
	case PM_UNSUPPORTED:
		(void)snprintf(why, GPUHW_WHY, "%s: not on this GPU (CUPTI: 27)", what);
		return -ENOTSUP;
	default:
		(void)snprintf(why, GPUHW_WHY, "%s: CUPTI's error %d", what, status);
		return -EIO;
	}
}

static int say_no_memory(char why[static GPUHW_WHY])
{
	(void)snprintf(why, GPUHW_WHY, "out of memory");
	return -ENOMEM;
}

/* --- starting --- */

/* No context is made: sampling needs none, and one takes memory of the job's device. */
static int open_driver(struct pm_session *session, char why[static GPUHW_WHY])
{
	int (*init)(unsigned) = NULL;
	void *symbol;
	int status;

	session->cuda = dlopen(CUDA_SONAME, RTLD_NOW | RTLD_LOCAL);
	symbol = session->cuda != NULL ? dlsym(session->cuda, "cuInit") : NULL;
	if (symbol == NULL) {
		(void)snprintf(why, GPUHW_WHY, "no " CUDA_SONAME);
		return -ENODEV;
	}
	memcpy(&init, &symbol, sizeof(symbol));
	status = init(0);
	if (status == 0)
		return 0;
	(void)snprintf(why, GPUHW_WHY, "cuInit: CUDA's error %d", status);
	return -ENODEV;
}

static int open_profiler(struct pm_session *session, char why[static GPUHW_WHY])
{
	struct pm_initialize initialize = { .size = sizeof(initialize) };
	struct pm_chip_name chip = { .size = sizeof(chip), .device = session->device };
	struct pm_functions *functions = session->library->functions;
	int status = session->target.version(&session->version);

	if (status == PM_OK && functions->profiling == 0)
		status = session->target.initialize(&initialize);
	if (status != PM_OK)
		return say_status("PM sampling", status, why);
	functions->profiling++;
	session->initialized = true;
	status = session->target.chip_name(&chip);
	if (status != PM_OK)
		return say_status("PM sampling: chip", status, why);
	(void)snprintf(session->chip, sizeof(session->chip), "%s", chip.name);
	return 0;
}

static int choose(struct pm_session *session, const uint8_t *availability,
		  char why[static GPUHW_WHY])
{
	struct pm_choice choice;
	int error = pm_choose(session->library, session->chip, availability, &choice, why);

	if (error < 0)
		return error;
	error = pm_plan_open(session->library, session->chip, availability, &choice,
			     &session->plan);
	if (error < 0)
		(void)snprintf(why, GPUHW_WHY, "PM sampling: no plan for %.16s", session->chip);
	return error;
}

static int make_plan(struct pm_session *session, char why[static GPUHW_WHY])
{
	struct pm_availability ask = { .size = sizeof(ask), .device = session->device };
	_cleanup_free_ uint8_t *image = NULL;
	int status = session->target.availability(&ask);

	if (status != PM_OK)
		return say_status("PM sampling", status, why);
	image = calloc(1, MAX(ask.bytes, (size_t)1));
	if (image == NULL)
		return say_no_memory(why);
	ask.image = image;
	status = session->target.availability(&ask);
	if (status != PM_OK)
		return say_status("PM sampling", status, why);
	return choose(session, image, why);
}

static int configure(struct pm_session *session, char why[static GPUHW_WHY])
{
	bool cycles = strncmp(session->chip, "TU", 2) == 0 || strcmp(session->chip, "GA100") == 0;
	struct pm_configure request = {
		.size = session->version > PM_NO_APPEND ? sizeof(request)
							: PM_SIZE(pm_configure, trigger),
		.object = session->object,
		.config_bytes = session->plan.config_bytes,
		.config = session->plan.config,
		.buffer_bytes = BUFFER_BYTES,
		.interval = (cycles ? SYSTEM_CLOCK_HZ : (uint64_t)NSEC_PER_SEC) / session->hz,
		.trigger = cycles ? PM_EVERY_CYCLES : PM_EVERY_NS,
		.append = PM_KEEP_OLDEST,
	};
	int status = session->target.configure(&request);

	return status == PM_OK ? 0 : say_status("PM sampling: set up", status, why);
}

static int clear_image(struct pm_session *session)
{
	struct pm_image_clear clear = { .size = sizeof(clear),
					.object = session->object,
					.bytes = session->image_bytes,
					.image = session->image };

	return session->target.image_clear(&clear);
}

static int make_image(struct pm_session *session, char why[static GPUHW_WHY])
{
	struct pm_image_size ask = { .size = sizeof(ask),
				     .object = session->object,
				     .names = session->plan.names,
				     .cnt = session->plan.cnt,
				     .samples = IMAGE_SAMPLES };
	int status = session->target.image_size(&ask);

	if (status != PM_OK)
		return say_status("PM sampling: image", status, why);
	free(session->image);
	session->image = calloc(1, MAX(ask.bytes, (size_t)1));
	if (session->image == NULL)
		return say_no_memory(why);
	session->image_bytes = ask.bytes;
	status = clear_image(session);
	return status == PM_OK ? 0 : say_status("PM sampling: image", status, why);
}

static int order(int (*what)(struct pm_order *), struct pm_object *object)
{
	struct pm_order request = { .size = sizeof(request), .object = object };

	return what(&request);
}

/* Afterwards other processes can get the counters. */
static void disable(struct pm_session *session)
{
	if (session->object != NULL)
		(void)order(session->target.disable, session->object);
	session->object = NULL;
	session->running = false;
}

static int begin(struct pm_session *session, uint32_t hz, char why[static GPUHW_WHY])
{
	struct pm_enable enable = { .size = sizeof(enable), .device = session->device };
	int status = session->target.enable(&enable), error;

	if (status != PM_OK)
		return say_status("PM sampling", status, why);
	session->object = enable.object;
	session->hz = hz;
	session->first = true;
	error = configure(session, why);
	if (error == 0)
		error = make_image(session, why);
	if (error < 0)
		return error;
	status = order(session->target.start, session->object);
	if (status != PM_OK)
		return say_status("PM sampling: start", status, why);
	session->running = true;
	return 0;
}

static int plan_and_begin(struct pm_session *session, char why[static GPUHW_WHY])
{
	int error = make_plan(session, why);

	return error < 0 ? error : begin(session, PM_FAST_HZ, why);
}

/*
 * Up to Ada DCGM's profiling metrics own the device's counters; from Hopper on it takes GPM's.
 * Source: DCGM user guide, "Feature Overview", Profiling Metrics.
 */
static bool dcgm_owns_counters(const char *chip)
{
	static const char *const before_hopper[] = { "TU", "GA", "AD" };

	for (size_t i = 0; i < ARRAY_SIZE(before_hopper); i++) {
		if (strncmp(chip, before_hopper[i], 2) == 0)
			return true;
	}
	return false;
}

const struct gpupause_tool gpucounters_dcgm = {
	.name = "dcgm",
	.pause = "dcgmi profile --pause",
	.resume = "dcgmi profile --resume",
};

/* Where the counters are another tool's, it is asked once. */
static int take_counters(struct pm_session *session, char why[static GPUHW_WHY])
{
	const struct gpucounters_setup *setup = &session->setup;
	int error = plan_and_begin(session, why);

	if (error != -EBUSY || setup->let_go == NULL || !dcgm_owns_counters(session->chip) ||
	    !setup->let_go(setup->arg, &gpucounters_dcgm))
		return error;
	disable(session);
	pm_plan_close(session->library, &session->plan);
	return plan_and_begin(session, why);
}

static int start(struct pm_session *session, char why[static GPUHW_WHY])
{
	const char *missing = pm_target_find(session->library->handle, &session->target);
	int error;

	if (missing != NULL) {
		(void)snprintf(why, GPUHW_WHY, "no %.50s", missing);
		return -ENOTSUP;
	}
	error = open_driver(session, why);
	if (error == 0)
		error = open_profiler(session, why);
	return error < 0 ? error : take_counters(session, why);
}

static void free_session(struct pm_session *session)
{
	struct pm_initialize request = { .size = sizeof(request) };

	disable(session);
	pm_plan_close(session->library, &session->plan);
	if (session->initialized && --session->library->functions->profiling == 0)
		(void)session->target.deinitialize(&request);
	if (session->cuda != NULL)
		(void)dlclose(session->cuda);
	free(session->image);
	free(session);
}

int pm_session_start(const struct pm_library *library, uint32_t device,
		     const struct gpucounters_setup *setup, struct pm_session **ret,
		     char why[static GPUHW_WHY])
{
	struct pm_session *session = calloc(1, sizeof(*session));
	int error;

	if (session == NULL)
		return say_no_memory(why);
	session->library = library;
	session->device = device;
	session->setup = *setup;
	error = start(session, why);
	if (error < 0)
		free_session(session);
	else
		*ret = session;
	return error;
}

/* --- samples --- */

static const struct {
	enum pm_kind kind;
	enum gpu_metric metric;
	double scale;
} meanings[] = {
	{ PM_ACTIVE, GPU_METRIC_ACTIVE, 0.01 },
	{ PM_CORES_ACTIVE, GPU_METRIC_CORES_ACTIVE, 0.01 },
	{ PM_ISSUE, GPU_METRIC_ISSUE_ACTIVE, 0.01 },
	{ PM_MATRIX, GPU_METRIC_MATRIX_ACTIVE, 0.01 },
	{ PM_PCIE_READ, GPU_METRIC_PCIE_RX_RATE, 1 },
	{ PM_PCIE_WRITE, GPU_METRIC_PCIE_TX_RATE, 1 },
	{ PM_PCIE_BOTH, GPU_METRIC_PCIE_ACTIVE, 0.01 },
	{ PM_LINK_RX, GPU_METRIC_LINK_RX_RATE, 1 },
	{ PM_LINK_TX, GPU_METRIC_LINK_TX_RATE, 1 },
	{ PM_CORE_CLOCK, GPU_METRIC_CORE_CLOCK, 1 },
	{ PM_SYSTEM_CLOCK, GPU_METRIC_SYSTEM_CLOCK, 1 },
	{ PM_MEMORY_CLOCK, GPU_METRIC_MEMORY_CLOCK, 1 },
};

static double mean_of(const struct bucket *bucket, enum pm_kind kind)
{
	return bucket->sums[kind] / bucket->cnts[kind];
}

static void fill_values(const struct bucket *bucket, struct gpuhw_values *values)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
		if (bucket->cnts[meanings[i].kind] > 0)
			gpuhw_set(values, meanings[i].metric,
				  mean_of(bucket, meanings[i].kind) * meanings[i].scale);
	}
	/* Both are shares of the same bandwidth. */
	if (bucket->cnts[PM_MEMORY_READ] > 0 && bucket->cnts[PM_MEMORY_WRITE] > 0)
		gpuhw_set(values, GPU_METRIC_MEMORY_ACTIVE,
			  (mean_of(bucket, PM_MEMORY_READ) + mean_of(bucket, PM_MEMORY_WRITE)) *
				  0.01);
}

/* A better estimate of the clocks' offset must not move time backward. */
static void hand_on(struct pm_session *session)
{
	struct bucket *bucket = &session->bucket;
	struct gpuhw_values values = { 0 };

	if (bucket->cnt == 0)
		return;
	fill_values(bucket, &values);
	session->taken_ns = MAX(session->taken_ns, bucket->end_ns + session->offset_ns);
	session->setup.take(session->setup.arg, session->taken_ns, &values);
	session->counts.buckets++;
	bucket->cnt = 0;
}

static void add_sample(struct pm_session *session, int64_t end_ns, const double *values)
{
	struct bucket *bucket = &session->bucket;
	int64_t idx = end_ns / session->setup.bucket_ns;

	if (bucket->cnt > 0 && bucket->idx != idx)
		hand_on(session);
	if (bucket->cnt == 0)
		*bucket = (struct bucket){ .idx = idx };
	for (size_t i = 0; i < session->plan.cnt; i++) {
		/* A counter that was not read is reported as NaN. */
		if (!isfinite(values[i]) || values[i] < 0)
			continue;
		bucket->sums[session->plan.kinds[i]] += values[i];
		bucket->cnts[session->plan.kinds[i]]++;
	}
	bucket->end_ns = end_ns;
	bucket->cnt++;
	session->counts.samples++;
}

static void take_sample(struct pm_session *session, size_t idx)
{
	double values[PM_KIND_CNT] = { 0 };
	struct pm_sample_info info = { .size = sizeof(info),
				       .object = session->object,
				       .image = session->image,
				       .bytes = session->image_bytes,
				       .idx = idx };
	struct pm_evaluate evaluate = { .size = sizeof(evaluate),
					.host = session->plan.host,
					.image = session->image,
					.image_bytes = session->image_bytes,
					.idx = idx,
					.names = session->plan.names,
					.cnt = session->plan.cnt,
					.values = values };

	if (session->target.sample_info(&info) != PM_OK ||
	    session->target.evaluate(&evaluate) != PM_OK) {
		session->counts.failed++;
		return;
	}
	if (!session->first)
		add_sample(session, (int64_t)info.end, values);
	session->first = false;
}

/*
 * A sample cannot end after it was decoded: now less its end is the clocks' distance and
 * how late it came. The least of all drains is nearest to the distance.
 */
static void synchronize(struct pm_session *session, size_t last_idx, int64_t now_ns)
{
	struct pm_sample_info info = { .size = sizeof(info),
				       .object = session->object,
				       .image = session->image,
				       .bytes = session->image_bytes,
				       .idx = last_idx };
	int64_t offset_ns;

	if (session->target.sample_info(&info) != PM_OK)
		return;
	offset_ns = now_ns - (int64_t)info.end;
	if (!session->synchronized || offset_ns < session->offset_ns)
		session->offset_ns = offset_ns;
	session->synchronized = true;
}

/* --- draining --- */

/* Decodes once. Returns CUPTI's status, why it stopped and whether the buffer overflowed. */
static int decode(struct pm_session *session, int *ret_stopped, bool *ret_overflow)
{
	struct pm_decode request = { .size = PM_SIZE(pm_decode, overflow),
				     .object = session->object,
				     .image = session->image,
				     .bytes = session->image_bytes };
	struct pm_image_info info = { .size = sizeof(info),
				      .image = session->image,
				      .bytes = session->image_bytes };
	int status = session->target.decode(&request);

	if (status == PM_OK)
		status = session->target.image_info(&info);
	if (status != PM_OK)
		return status;
	if (info.completed > 0)
		synchronize(session, info.completed - 1, session->setup.now_ns());
	for (size_t i = 0; i < info.completed; i++)
		take_sample(session, i);
	*ret_stopped = request.stopped;
	*ret_overflow = *ret_overflow || request.overflow != 0;
	return clear_image(session);
}

/* Bounded: a device that fills as fast as it is read must not keep the thread. */
static int drain(struct pm_session *session, int decodes, bool *ret_overflow)
{
	int stopped = PM_STOP_FULL, status = PM_OK;

	for (int i = 0; i < decodes && status == PM_OK && stopped != PM_STOP_END; i++)
		status = decode(session, &stopped, ret_overflow);
	session->counts.unfinished += status == PM_OK && stopped != PM_STOP_END;
	session->counts.overflows += *ret_overflow;
	return status;
}

/* Stopped before it is read to the end, so that there is one. */
static void end(struct pm_session *session)
{
	bool overflow = false;

	if (session->running) {
		(void)order(session->target.stop, session->object);
		(void)drain(session, DECODES_AT_END, &overflow);
	}
	hand_on(session);
	disable(session);
}

static int end_with(struct pm_session *session, int error)
{
	end(session);
	session->hz = 0;
	return error;
}

static int begin_slower(struct pm_session *session, char why[static GPUHW_WHY])
{
	int error;

	if (session->hz == PM_SLOW_HZ) {
		(void)snprintf(why, GPUHW_WHY, "PM sampling: overflow at %u Hz", PM_SLOW_HZ);
		return end_with(session, -EOVERFLOW);
	}
	end(session);
	error = begin(session, PM_SLOW_HZ, why);
	return error < 0 ? end_with(session, error) : 0;
}

int pm_session_drain(struct pm_session *session, char why[static GPUHW_WHY])
{
	bool overflow = false;
	int status;

	if (!session->running) {
		(void)snprintf(why, GPUHW_WHY, "PM sampling has ended");
		return -EIO;
	}
	status = drain(session, DECODES_A_DRAIN, &overflow);
	if (status != PM_OK)
		return end_with(session, say_status("PM sampling: decode", status, why));
	return overflow ? begin_slower(session, why) : 0;
}

uint32_t pm_session_hz(const struct pm_session *session)
{
	return session->hz;
}

struct pm_session *pm_session_stop(struct pm_session *session, struct pm_counts *ret)
{
	if (session == NULL)
		return NULL;
	end(session);
	if (ret != NULL)
		*ret = session->counts;
	free_session(session);
	return NULL;
}
