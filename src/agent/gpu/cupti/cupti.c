/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end for NVIDIA's GPUs: CUPTI's activity records. The order of calls matters: subscribe,
 * clock, attributes, buffers, kinds; then disable, flush, and a finalize, without which training
 * stays slower after the window. CUPTI requires the finalize from within a call of the driver, at
 * its exit: a callback on a harmless call, which the helper thread makes itself, since a hanging
 * job makes none.
 *
 * A job may capture a graph at any time, see cupti_capture.h. Only one tool at a time may use CUPTI
 * in a process. The second subscriber gets an error; Kineto doesn't subscribe (see
 * end_recording()). The buffers' callbacks take no lock and call nothing. After a fatal error CUPTI
 * unloads itself as soon as its callback has returned; the callback waits while the helper reads
 * memory that records point to.
 * Source: CUPTI's documentation, "CUPTI Activity API", "Dynamic Detaching"; Kineto's
 * CuptiActivityApi.cpp.
 */
#include "agent/gpu/buffers.h"
#include "agent/gpu/cupti/cupti_calls.h"
#include "agent/gpu/cupti/cupti_capture.h"
#include "agent/gpu/cupti/cupti_library.h"
#include "agent/gpu/cupti/cupti_records.h"
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define DISCARD_CNT BUFFERS_MAX /* one for each thread at once */
#define DISCARD_BYTES ((size_t)16 << 10)
#define FLUSH_PERIOD_MS 500u
#define FINALIZE_LIMIT_NS (2 * NSEC_PER_SEC)
#define CAPTURE_LIMIT_NS NSEC_PER_SEC
#define FATAL_YIELDS 100000u /* a fatal error's thread waits for a reader no longer */
#define LITTLE_MEMORY_BYTES ((size_t)256 << 20)

enum finalize_state { FINALIZE_NONE, FINALIZE_WANTED, FINALIZE_RUNS, FINALIZE_DONE };

static struct cupti {
	bool found;
	bool forked;
	bool attached; /* subscribed, and not finalized since */
	bool stopped;  /* nothing is recorded any more */
	bool stolen;   /* buffers of this window were never returned */
	uint32_t version;
	struct cuda_functions cuda;
	struct cupti_functions api;
	void *subscriber;
	_Atomic bool fatal;	    /* CUPTI met an error and detaches itself */
	_Atomic bool reading;	    /* the helper reads records and their names */
	_Atomic uint32_t finalize;  /* enum finalize_state */
	_Atomic uint64_t discarded; /* records, at least */
	struct capture capture;	    /* of graphs, by the job */
	const struct gputrace_sink *sink;
	struct buffers buffers;
	struct buffers discards; /* where a library that can't be refused a buffer writes */
	struct cupti_reader reader;
} cupti;

static const int kinds[] = { CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY,
			     CUPTI_KIND_MEMCPY2,	   CUPTI_KIND_MEMSET,
			     CUPTI_KIND_SYNCHRONIZATION,   CUPTI_KIND_OVERHEAD };

/* --- what CUPTI calls --- */

/* Older versions may crash when they get no buffer. */
static bool may_refuse(void)
{
	return cupti.version >= CUPTI_VERSION_12_9;
}

static void request(uint8_t **buffer, size_t *size, size_t *record_max)
{
	*record_max = 0;
	*size = BUFFERS_BYTES;
	*buffer = buffers_take(&cupti.buffers);
	if (*buffer != NULL)
		return;
	/* No two threads write into one. NULL: it drops records, and counts them. */
	*buffer = buffers_take(&cupti.discards);
	*size = *buffer != NULL ? DISCARD_BYTES : 0;
}

/* At least so many. */
static size_t records_in(size_t bytes)
{
	return MAX(bytes / CUPTI_RECORD_BYTES_MAX, bytes > 0 ? 1u : 0u);
}

static void complete(_unused_ void *context, _unused_ uint32_t stream, uint8_t *buffer,
		     _unused_ size_t size, size_t valid)
{
	if (buffer == NULL || buffers_fill(&cupti.buffers, buffer, valid))
		return;
	buffers_discard(&cupti.discards, buffer);
	atomic_fetch_add_explicit(&cupti.discarded, records_in(valid), memory_order_relaxed);
}

static uint64_t read_clock(void)
{
	return (uint64_t)clock_mono_ns();
}

/*
 * Sequentially consistent, as in drain(): either the helper sees the error or it is seen reading.
 * It reads for microseconds; the wait is limited in case the helper itself waits for CUPTI.
 */
static void on_fatal(void)
{
	atomic_store(&cupti.fatal, true);
	for (uint32_t i = 0; i < FATAL_YIELDS && atomic_load(&cupti.reading); i++)
		(void)sched_yield();
}

/* Within a call of the driver, at its exit; of a job's thread if that made one just now. */
static void finalize_here(void)
{
	uint32_t wanted = FINALIZE_WANTED;
	int mode;

	if (capture_goes_on(&cupti.capture) ||
	    !atomic_compare_exchange_strong(&cupti.finalize, &wanted, FINALIZE_RUNS))
		return;
	mode = capture_relax(&cupti.cuda);
	(void)cupti.api.unsubscribe(cupti.subscriber);
	(void)cupti.api.finalize();
	capture_restore(&cupti.cuda, mode);
	atomic_store(&cupti.finalize, FINALIZE_DONE);
}

/* The state's callback comes from CUPTI's own threads, the others from calls of the driver. */
static void on_callback(_unused_ void *data, uint32_t domain, uint32_t call, const void *info)
{
	const struct cupti_callback_data *at = info;

	if (domain == CUPTI_DOMAIN_STATE && call == CUPTI_STATE_FATAL_ERROR)
		on_fatal();
	if (domain != CUPTI_DOMAIN_DRIVER)
		return;
	capture_note(&cupti.capture, call, at);
	if (call == CUPTI_DRIVER_GET_VERSION && at->site == CUPTI_SITE_EXIT)
		finalize_here();
}

/* --- probe --- */

static int probe(char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret;

	if (cupti.forked) {
		gputrace_why(ret_why, "a forked child", NULL);
		return -ENOENT;
	}
	ret = cuda_find(&cupti.cuda, ret_why);
	if (ret < 0)
		return ret;
	if (!cuda_is_in_use(&cupti.cuda)) {
		gputrace_why(ret_why, "this process has no CUDA context", NULL);
		return -ENOENT;
	}
	if (atomic_load(&cupti.fatal)) {
		gputrace_why(ret_why, "CUPTI met a fatal error in an earlier window", NULL);
		return -ENOTSUP;
	}
	if (cupti.found)
		return 0;
	ret = cupti_find(&cupti.api, ret_why);
	if (ret == 0 && cupti.api.get_version(&cupti.version) != CUPTI_OK)
		ret = cupti_explain(CUPTI_UNKNOWN, "cuptiGetVersion", ret_why);
	cupti.found = ret == 0;
	return ret;
}

/* --- start --- */

static int busy(const char *who, char ret_why[static GPUTRACE_WHY_MAX])
{
	gputrace_why(ret_why, "another profiler uses CUPTI in this process",
		     who[0] != '\0' ? ": " : "", who, NULL);
	return -EBUSY;
}

static void detached(void)
{
	cupti.attached = false;
	atomic_store(&cupti.finalize, FINALIZE_NONE);
	(void)buffers_reset(&cupti.buffers);
	(void)buffers_reset(&cupti.discards);
}

/*
 * Re-attaching after it crashed while graphs were alive, before CUDA 12.6. Whether some are is
 * not to be known: they may have been captured in this window or before it, and never launched
 * in one. Later versions (seen with 13.0) fail at the next launch of a graph (719, and with it the
 * job) when that graph was launched while kernels were recorded, and again before the finalize.
 */
static bool may_finalize(void)
{
	return cupti.version >= CUPTI_VERSION_12_6 && !cupti.reader.graphs_ran;
}

static int subscribe(char ret_why[static GPUTRACE_WHY_MAX])
{
	char who[CUPTI_OLD_SUBSCRIBER_BYTES] = "";
	struct cupti_subscriber_params params = { sizeof(params), "perftracker", who, sizeof(who) };
	uint32_t result;

	if (atomic_load(&cupti.finalize) == FINALIZE_RUNS) {
		gputrace_why(ret_why, "CUPTI is still being detached from the window before", NULL);
		return -EBUSY;
	}
	if (cupti.attached && atomic_load(&cupti.finalize) == FINALIZE_DONE)
		detached(); /* after it was abandoned */
	if (cupti.attached) /* the last window could not detach */
		return 0;
	if (cupti.api.subscribe_v2 != NULL)
		result = cupti.api.subscribe_v2(&cupti.subscriber, on_callback, NULL, &params);
	else
		result = cupti.api.subscribe(&cupti.subscriber, on_callback, NULL);
	who[sizeof(who) - 1] = '\0';
	if (result == CUPTI_MULTIPLE_SUBSCRIBERS)
		return busy(who, ret_why);
	if (result != CUPTI_OK)
		return cupti_explain(result, "cuptiSubscribe", ret_why);
	cupti.attached = true;
	(void)cupti.api.enable_callback(1, cupti.subscriber, CUPTI_DOMAIN_STATE,
					CUPTI_STATE_FATAL_ERROR);
	if (may_finalize()) /* only then captures are tracked */
		capture_watch(&cupti.capture, &cupti.api, cupti.subscriber);
	return 0;
}

/* Leaves the subscriber's place to others; what CUPTI is to the GPU stays. */
static void unsubscribe(void)
{
	int mode = capture_relax(&cupti.cuda);

	(void)cupti.api.unsubscribe(cupti.subscriber);
	capture_restore(&cupti.cuda, mode);
	cupti.attached = false;
}

static void set_attribute(int attribute, uint8_t value)
{
	size_t size = sizeof(value);

	(void)cupti.api.set_attribute(attribute, &size, &value);
}

/*
 * Without the agent's clock callback times are wall clock times: the two clocks are compared once.
 */
static void set_clock(void)
{
	cupti.reader.offset_ns = 0;
	if (cupti.api.register_clock == NULL || cupti.api.register_clock(read_clock) != CUPTI_OK)
		cupti.reader.offset_ns = clock_mono_ns() - clock_wall_ns();
}

/*
 * CUPTI keeps times in memory of the GPU; when an allocator has eaten that, they come as 0. Then
 * pinned memory of the host does.
 */
static void set_attributes(void)
{
	size_t free_bytes, total_bytes;
	void *context = NULL;

	set_attribute(CUPTI_ATTR_PER_THREAD_BUFFER, 1);
	/* Discarded buffers are not zeroed. */
	set_attribute(CUPTI_ATTR_ZEROED_OUT_BUFFER, may_refuse());
	if (cupti.cuda.context_current(&context) == 0 && context != NULL &&
	    cupti.cuda.memory_info(&free_bytes, &total_bytes) == 0 &&
	    free_bytes < LITTLE_MEMORY_BYTES)
		set_attribute(CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED, 1);
}

/*
 * Old versions know all calls or none: those of the runtime launch nearly all kernels. In later ones
 * the others are switched off. To switch on the chosen ones without the kind records nothing (CUDA
 * 13.0), whatever the header says.
 */
static void enable_calls(void)
{
	static const struct {
		uint32_t domain;
		int kind;
	} parts[] = { { CUPTI_DOMAIN_RUNTIME, CUPTI_KIND_RUNTIME },
		      { CUPTI_DOMAIN_DRIVER, CUPTI_KIND_DRIVER } };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		uint32_t domain = parts[i].domain;
		uint32_t (*choose)(uint32_t call, uint8_t enable) =
			domain == CUPTI_DOMAIN_RUNTIME ? cupti.api.enable_runtime_call
						       : cupti.api.enable_driver_call;

		if (choose == NULL && domain == CUPTI_DOMAIN_DRIVER)
			return;
		if (cupti.api.enable(parts[i].kind) != CUPTI_OK)
			continue;
		for (uint32_t call = 1; call < CUPTI_CALL_MAX && choose != NULL; call++) {
			if (cupti_call_name(domain, call) == NULL)
				(void)choose(call, 0);
		}
	}
}

static int enable_kinds(char ret_why[static GPUTRACE_WHY_MAX])
{
	uint32_t result = cupti.api.register_buffers(request, complete);

	if (result != CUPTI_OK)
		return cupti_explain(result, "cuptiActivityRegisterCallbacks", ret_why);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		result = cupti.api.enable(kinds[i]);
		if (result == CUPTI_MULTIPLE_SUBSCRIBERS)
			return busy("", ret_why);
		if (result != CUPTI_OK && kinds[i] == CUPTI_KIND_CONCURRENT_KERNEL)
			return cupti_explain(result, "cuptiActivityEnable", ret_why);
	}
	if (cupti.api.enable_all_syncs != NULL)
		(void)cupti.api.enable_all_syncs(0);
	enable_calls();
	if (cupti.api.flush_period != NULL)
		(void)cupti.api.flush_period(FLUSH_PERIOD_MS);
	return 0;
}

static void name_device(void)
{
	char name[128] = "";
	int device;

	if (cupti.cuda.device_get(&device, 0) == 0 &&
	    cupti.cuda.device_name(name, sizeof(name) - 1, device) == 0)
		cupti.sink->device(name);
}

static void disable_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		(void)cupti.api.disable(kinds[i]);
	(void)cupti.api.disable(CUPTI_KIND_RUNTIME);
	(void)cupti.api.disable(CUPTI_KIND_DRIVER);
}

static int open_buffers(char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret = buffers_open(&cupti.buffers, BUFFERS_CNT, BUFFERS_BYTES);

	if (ret == 0 && !may_refuse())
		ret = buffers_open(&cupti.discards, DISCARD_CNT, DISCARD_BYTES);
	if (ret < 0)
		gputrace_why(ret_why, "no memory for the GPU's buffers", NULL);
	return ret;
}

static int attach(char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret = subscribe(ret_why);

	if (ret < 0)
		return ret;
	if (cupti.api.set_thread_id_type != NULL)
		(void)cupti.api.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	set_clock();
	set_attributes();
	ret = enable_kinds(ret_why);
	if (ret == 0)
		return 0;
	disable_all();
	unsubscribe();
	return ret;
}

static int start(const struct gputrace_sink *sink, char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret = open_buffers(ret_why), mode;

	if (ret < 0)
		return ret;
	cupti.stopped = cupti.stolen = false;
	cupti.sink = sink;
	cupti.reader.sink = sink;
	cupti.reader.next = cupti.api.next_record;
	cupti.reader.graphs_uncorrelated =
		cupti.version >= CUPTI_VERSION_13_0 && cupti.version < CUPTI_VERSION_13_1_1;
	cupti_reader_reset(&cupti.reader);
	mode = capture_relax(&cupti.cuda);
	ret = attach(ret_why);
	capture_restore(&cupti.cuda, mode);
	if (ret < 0)
		return ret;
	name_device();
	return 0;
}

/* --- drain --- */

static size_t drain(size_t most)
{
	size_t cnt = 0;

	atomic_store(&cupti.reading, true);
	if (!atomic_load(&cupti.fatal)) /* else the records' names may be gone */
		cnt = buffers_drain(&cupti.buffers, cupti_reader_read, &cupti.reader, most);
	atomic_store(&cupti.reading, false);
	if (cnt == 0 && cupti.stopped)
		cupti_reader_end(&cupti.reader);
	return cnt;
}

/* --- stop and close --- */

static void count_dropped(void)
{
	size_t dropped = 0;

	if (cupti.api.dropped(NULL, 0, &dropped) == CUPTI_OK && dropped > 0)
		cupti.sink->lose(GPUTRACE_DROPPED, dropped);
	dropped = atomic_exchange(&cupti.discarded, 0);
	if (dropped > 0)
		cupti.sink->lose(GPUTRACE_DROPPED, dropped);
}

/*
 * Kineto, triggered by a daemon, registers buffers of its own without subscribing: no event reports
 * that, and from then on all records go to it, also the agent's buffers that CUPTI had.
 */
static void end_recording(void)
{
	uint64_t filled = buffers_filled_cnt(&cupti.buffers);
	size_t begun = buffers_begun_cnt(&cupti.buffers);

	disable_all(); /* records without a reader would pile up in the job's memory */
	(void)cupti.api.flush_all(0);
	(void)cupti.api.flush_all(CUPTI_FLUSH_FORCED);
	cupti.stolen = begun > 0 && filled == buffers_filled_cnt(&cupti.buffers);
	if (cupti.stolen)
		cupti.sink->lose(GPUTRACE_DROPPED, begun); /* records: at least one in each */
}

static void stop(void)
{
	int mode;

	cupti.stopped = true;
	if (atomic_load(&cupti.fatal))
		return;
	mode = capture_relax(&cupti.cuda);
	end_recording();
	capture_restore(&cupti.cuda, mode);
	count_dropped();
}

/* Returns 0; -ETIMEDOUT: it did not begin; -EBUSY: it goes on, on another thread. */
static int wait_finalized(void)
{
	int64_t limit_ns = clock_mono_ns() + FINALIZE_LIMIT_NS;
	uint32_t wanted = FINALIZE_WANTED;

	/* Another thread's call may have come first, and finalizes now. */
	while (atomic_load(&cupti.finalize) != FINALIZE_DONE) {
		if (atomic_compare_exchange_strong(&cupti.finalize, &wanted, FINALIZE_NONE))
			return -ETIMEDOUT; /* the callback did not run, and will not */
		wanted = FINALIZE_WANTED;
		if (clock_mono_ns() > limit_ns)
			return -EBUSY;
		(void)sched_yield();
	}
	return 0;
}

static int finalize(void)
{
	int version;

	atomic_store(&cupti.finalize, FINALIZE_WANTED);
	if (cupti.api.enable_callback(1, cupti.subscriber, CUPTI_DOMAIN_DRIVER,
				      CUPTI_DRIVER_GET_VERSION) != CUPTI_OK) {
		atomic_store(&cupti.finalize, FINALIZE_NONE);
		return -EAGAIN;
	}
	(void)cupti.cuda.driver_version(&version);
	return wait_finalized();
}

static int detach(char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret;

	if (!may_finalize()) {
		unsubscribe();
		gputrace_why(ret_why, "CUPTI is left idle, not detached: ",
			     cupti.version < CUPTI_VERSION_12_6
				     ? "before CUDA 12.6 that may harm graphs"
				     : "the job launches CUDA graphs",
			     NULL);
		return -EOPNOTSUPP;
	}
	ret = capture_wait(&cupti.capture, CAPTURE_LIMIT_NS);
	if (ret < 0) {
		gputrace_why(ret_why, "CUPTI stays attached, idle: the job captures a CUDA graph",
			     NULL);
		return ret;
	}
	ret = finalize();
	if (ret == -EBUSY) { /* the subscriber may no longer be used */
		gputrace_why(ret_why, "CUPTI is detached later: it takes long", NULL);
		return ret;
	}
	if (ret < 0) {
		(void)cupti.api.enable_callback(0, cupti.subscriber, CUPTI_DOMAIN_DRIVER,
						CUPTI_DRIVER_GET_VERSION);
		gputrace_why(ret_why, "CUPTI stays attached, idle: it could not be detached", NULL);
		return ret;
	}
	detached();
	return 0;
}

/* Of the buffer that is being read, behind the record that was read last. */
static size_t records_left(size_t valid)
{
	uint8_t *last = cupti.buffers.reading.at;

	if (last == NULL)
		return records_in(valid);
	return records_in(valid - (size_t)(last - cupti.buffers.reading.buffer)) - 1;
}

/*
 * CUPTI is unloaded, and the memory its records point to is freed. Its threads may still run:
 * buffers that they hold are never reused, which is harmless, as this was the last window.
 */
static void drop_buffers(void)
{
	uint64_t lost = atomic_exchange(&cupti.discarded, 0);
	uint8_t *buffer;
	size_t valid;

	while ((buffer = buffers_next(&cupti.buffers, &valid)) != NULL) {
		lost += buffer == cupti.buffers.reading.buffer ? records_left(valid)
							       : records_in(valid);
		buffers_release(&cupti.buffers, buffer);
	}
	cupti.buffers.reading.buffer = NULL;
	cupti.sink->lose(GPUTRACE_DROPPED, lost);
	cupti.attached = false;
}

static int close_session(char ret_why[static GPUTRACE_WHY_MAX])
{
	if (atomic_load(&cupti.fatal)) {
		gputrace_why(ret_why, "CUPTI met a fatal error and ended the window itself", NULL);
		drop_buffers();
		return -EIO;
	}
	buffers_leave(&cupti.buffers);
	if (!cupti.stolen)
		return detach(ret_why);
	unsubscribe(); /* a finalize would end another tool's recording */
	gputrace_why(ret_why, "another tool took CUPTI's buffers in the midst of the window", NULL);
	return -EIO;
}

static void forked(void)
{
	cupti.forked = true;
}

const struct gputrace_ops gputrace_cupti = {
	.name = "cupti",
	.probe = probe,
	.start = start,
	.drain = drain,
	.stop = stop,
	.close = close_session,
	.forked = forked,
};
