/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/calls/gputimer.h"

#include "agent/core/lane.h"
#include "base/clock.h"
#include "base/compat.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

#define PROBES 4u			/* timers that are tried before all count as taken */
#define UNCLAIMED_NS (5 * NSEC_PER_SEC) /* a timer no call has claimed by then is freed */
#define BUSY_PAUSE_NS (10 * NSEC_PER_MSEC)
#define IDLE_PAUSE_NS (100 * NSEC_PER_MSEC)
#define LONG_PAUSE_NS NSEC_PER_SEC /* nothing can be timed */
#define LOOK_PAUSE_MAX_NS (60 * NSEC_PER_SEC)
#define CAPTURE_NONE 0	     /* CUstreamCaptureStatus */
#define CAPTURE_RELAXED 2    /* CUstreamCaptureMode */
#define DRIVER_NOT_READY 600 /* CUresult */

enum state {
	STATE_LOOKING,	  /* for the driver */
	STATE_NO_CONTEXT, /* for a thread that uses a GPU */
	STATE_CREATING,
	STATE_READY,
	STATE_BROKEN
};

/*
 * In this order; the helper frees slots that are CLAIMED and done, or too old. In TAKEN, ENDING and
 * CLAIMING the slot belongs to the thread that set the state, and is not freed.
 */
enum phase { FREE, TAKEN, BEGUN, ENDING, ENDED, CLAIMING, CLAIMED };

struct slot {
	_Atomic uint64_t stamp; /* use << 8 | enum phase */
	void *begin, *end;	/* events */
	void *queue;
	_Atomic int64_t call_ns;
	size_t record_cnt;
	struct ring_record records[GPUTIMER_RECORDS_MAX];
};

static struct {
	_Atomic bool on;
	_Atomic bool asked;	/* there are calls */
	_Atomic uint32_t state; /* enum state */
	_Atomic uint32_t next;
	void *_Atomic context; /* the GPU's; set by the first that calls */
	bool attached;	       /* the helper uses it */
	int64_t look_ns;       /* when the helper looks for the driver next */
	int64_t look_pause_ns;
	struct slot slots[GPUTIMER_CNT];
} timers;

/* Functions of the driver. Filled by the helper before the first call of one. */
static struct {
	int (*context_current)(void **ret);
	int (*context_use)(void *context);
	int (*capture_mode)(int *mode);
	int (*is_capturing)(void *queue, int *ret);
	int (*event_create)(void **ret, unsigned flags);
	int (*event_record)(void *event, void *queue);
	int (*event_query)(void *event);
	int (*event_elapsed)(float *ret_ms, void *begin, void *end);
} driver;

#define ENTRY(field, symbol)                                \
	{                                                   \
		offsetof(__typeof__(driver), field), symbol \
	}

static const struct {
	size_t off;
	const char *symbol;
} entries[] = {
	ENTRY(context_current, "cuCtxGetCurrent"),
	ENTRY(context_use, "cuCtxSetCurrent"),
	ENTRY(capture_mode, "cuThreadExchangeStreamCaptureMode"),
	ENTRY(is_capturing, "cuStreamIsCapturing"),
	ENTRY(event_create, "cuEventCreate"),
	ENTRY(event_record, "cuEventRecord"),
	ENTRY(event_query, "cuEventQuery"),
	ENTRY(event_elapsed, "cuEventElapsedTime"),
};

static uint32_t state_now(void)
{
	return atomic_load_explicit(&timers.state, memory_order_acquire);
}

static void set_state(enum state state)
{
	atomic_store_explicit(&timers.state, (uint32_t)state, memory_order_release);
}

static void count_drop(void)
{
	struct flight *flight = lane_flight();

	if (flight != NULL)
		atomic_fetch_add_explicit(&flight->drops.timed, 1, memory_order_relaxed);
}

static void give_up(void)
{
	set_state(STATE_BROKEN);
	count_drop();
}

void gputimer_watch(bool on)
{
	atomic_store_explicit(&timers.on, on, memory_order_relaxed);
}

void gputimer_ask(void)
{
	if (!atomic_load_explicit(&timers.asked, memory_order_relaxed))
		atomic_store_explicit(&timers.asked, true, memory_order_relaxed);
}

bool gputimer_is_wanted(void)
{
	uint32_t state = state_now();

	if (state == STATE_LOOKING)
		gputimer_ask();
	return (state == STATE_READY || state == STATE_NO_CONTEXT) &&
	       atomic_load_explicit(&timers.on, memory_order_relaxed);
}

/* --- on threads of the job --- */

static gputimer handle_of(uint64_t use, uint32_t idx)
{
	return use << 16 | (idx + 1);
}

static struct slot *slot_of(gputimer timer, uint64_t *ret_use)
{
	*ret_use = timer >> 16;
	return &timers.slots[((timer & 0xffff) - 1) % GPUTIMER_CNT];
}

static bool advance(struct slot *slot, uint64_t use, enum phase from, enum phase to)
{
	uint64_t stamp = use << 8 | from;

	return atomic_compare_exchange_strong_explicit(&slot->stamp, &stamp, use << 8 | to,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* 0: all are under way. */
static gputimer take(void)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t idx = atomic_fetch_add_explicit(&timers.next, 1, memory_order_relaxed) %
			       GPUTIMER_CNT;
		struct slot *slot = &timers.slots[idx];
		uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
		uint64_t use = ((stamp >> 8) + 1) & (UINT64_MAX >> 16);

		if ((stamp & 0xff) == FREE &&
		    atomic_compare_exchange_strong(&slot->stamp, &stamp, use << 8 | TAKEN))
			return handle_of(use, idx);
	}
	return 0;
}

/* The first thread that uses a GPU determines which. */
static bool has_context(void)
{
	void *context = NULL, *none = NULL;

	if (driver.context_current(&context) != 0 || context == NULL)
		return false;
	if (state_now() == STATE_NO_CONTEXT) {
		if (atomic_compare_exchange_strong(&timers.context, &none, context))
			set_state(STATE_CREATING);
		return false;
	}
	if (context == atomic_load_explicit(&timers.context, memory_order_relaxed))
		return true;
	count_drop();
	return false;
}

/* An unknown state counts as captured: no event may be queued there. */
static bool is_captured(void *queue)
{
	int status = -1;

	return driver.is_capturing(queue, &status) != 0 || status != CAPTURE_NONE;
}

gputimer gputimer_begin(void *queue)
{
	struct slot *slot;
	gputimer timer;
	uint64_t use;

	if (!gputimer_is_wanted() || !has_context() || is_captured(queue))
		return 0;
	timer = take();
	if (timer == 0) {
		count_drop();
		return 0;
	}
	slot = slot_of(timer, &use);
	slot->queue = queue;
	atomic_store_explicit(&slot->call_ns, clock_mono_ns(), memory_order_relaxed);
	if (driver.event_record(slot->begin, queue) == 0) {
		(void)advance(slot, use, TAKEN, BEGUN);
		return timer;
	}
	(void)advance(slot, use, TAKEN, FREE);
	give_up();
	return 0;
}

void gputimer_end(gputimer timer)
{
	struct slot *slot;
	uint64_t use;

	if (timer == 0)
		return;
	slot = slot_of(timer, &use);
	if (!advance(slot, use, BEGUN, ENDING))
		return; /* the call took so long that the slot may be another's by now */
	if (state_now() != STATE_READY || is_captured(slot->queue)) {
		(void)advance(slot, use, ENDING, FREE);
	} else if (driver.event_record(slot->end, slot->queue) != 0) {
		(void)advance(slot, use, ENDING, FREE);
		give_up();
	} else {
		(void)advance(slot, use, ENDING, ENDED);
	}
}

void gputimer_claim(gputimer timer, const struct ring_record *records, size_t cnt)
{
	struct slot *slot;
	uint64_t use;

	if (timer == 0)
		return;
	slot = slot_of(timer, &use);
	if (!advance(slot, use, ENDED, CLAIMING))
		return; /* abandoned meanwhile */
	slot->record_cnt = MIN(cnt, (size_t)GPUTIMER_RECORDS_MAX);
	if (slot->record_cnt > 0)
		memcpy(slot->records, records, slot->record_cnt * sizeof(*records));
	(void)advance(slot, use, CLAIMING, CLAIMED);
}

/* --- on the helper --- */

/* 1 ends the search: it is the driver. */
static int is_driver(struct dl_phdr_info *info, _unused_ size_t size, _unused_ void *arg)
{
	static const char name[] = "libcuda.so";
	const char *slash = strrchr(info->dlpi_name, '/');

	return strncmp(slash != NULL ? slash + 1 : info->dlpi_name, name, sizeof(name) - 1) == 0;
}

static void look_for_driver(void)
{
	void *library = NULL;

	/* dlopen() would search the file system for one that is not loaded. */
	if (dl_iterate_phdr(is_driver, NULL) != 0)
		library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (library == NULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		void *function = dlsym(library, entries[i].symbol);

		if (function == NULL) {
			give_up();
			return;
		}
		memcpy((char *)&driver + entries[i].off, &function, sizeof(function));
	}
	set_state(STATE_NO_CONTEXT);
}

/* Ever less often. Returns the next pause. */
static int64_t look_now_and_then(int64_t now_ns)
{
	bool asked = atomic_load_explicit(&timers.asked, memory_order_relaxed);

	if (asked && now_ns < timers.look_ns)
		return LONG_PAUSE_NS;
	timers.look_pause_ns = MIN(MAX(2 * timers.look_pause_ns, LONG_PAUSE_NS), LOOK_PAUSE_MAX_NS);
	if (!asked)
		return timers.look_pause_ns;
	look_for_driver();
	timers.look_ns = now_ns + timers.look_pause_ns;
	return LONG_PAUSE_NS;
}

static bool attach_to_context(void)
{
	int mode = CAPTURE_RELAXED;

	if (!timers.attached)
		timers.attached = driver.context_use(atomic_load(&timers.context)) == 0 &&
				  driver.capture_mode(&mode) == 0;
	return timers.attached;
}

static void create_events(void)
{
	bool done = attach_to_context();

	for (size_t i = 0; i < GPUTIMER_CNT && done; i++)
		done = driver.event_create(&timers.slots[i].begin, 0) == 0 &&
		       driver.event_create(&timers.slots[i].end, 0) == 0;
	if (done)
		set_state(STATE_READY);
	else
		give_up();
}

/* False: the driver is in trouble. */
static bool finish(struct slot *slot, uint64_t use)
{
	int64_t call_ns = atomic_load_explicit(&slot->call_ns, memory_order_relaxed);
	int status = driver.event_query(slot->end);
	float ms = 0;

	if (status == DRIVER_NOT_READY)
		return true;
	if (status != 0 || driver.event_elapsed(&ms, slot->begin, slot->end) != 0)
		return false;
	slot->records[0].value = ms > 0 ? (int64_t)((double)ms * NSEC_PER_MSEC + 0.5) : 0;
	for (size_t i = 0; i < slot->record_cnt; i++) {
		slot->records[i].time_ns = call_ns;
		lane_record(&slot->records[i]);
	}
	(void)advance(slot, use, CLAIMED, FREE);
	return true;
}

static bool look_at(struct slot *slot, int64_t now_ns, size_t *under_way)
{
	uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
	uint64_t use = stamp >> 8;
	enum phase phase = (enum phase)(stamp & 0xff);

	*under_way += phase != FREE;
	if (phase == CLAIMED)
		return finish(slot, use);
	if ((phase == BEGUN || phase == ENDED) &&
	    now_ns - atomic_load_explicit(&slot->call_ns, memory_order_relaxed) > UNCLAIMED_NS &&
	    advance(slot, use, phase, FREE))
		count_drop();
	return true;
}

static int64_t look_at_all(int64_t now_ns)
{
	size_t under_way = 0;

	for (size_t i = 0; i < GPUTIMER_CNT; i++) {
		if (!look_at(&timers.slots[i], now_ns, &under_way)) {
			give_up();
			return LONG_PAUSE_NS;
		}
	}
	return under_way > 0 ? BUSY_PAUSE_NS : IDLE_PAUSE_NS;
}

int64_t gputimer_work(int64_t now_ns)
{
	switch ((enum state)state_now()) {
	case STATE_LOOKING:
		return look_now_and_then(now_ns);
	case STATE_CREATING:
		create_events();
		return IDLE_PAUSE_NS;
	case STATE_READY:
		return look_at_all(now_ns);
	case STATE_NO_CONTEXT:
	case STATE_BROKEN:
		break;
	}
	return LONG_PAUSE_NS;
}

void gputimer_forked(void)
{
	atomic_store_explicit(&timers.on, false, memory_order_relaxed);
	set_state(STATE_BROKEN); /* the driver's state is its parent's */
}
