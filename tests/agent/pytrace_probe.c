/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytrace.c with a flight recorder as a library of its own, for test_pytrace.py, which
 * calls it with the interpreter lock held.
 */
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/python/pytrace.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

struct probe_call {
	uint32_t tid, kind;
	int64_t start_ns, duration_ns;
	uint32_t name; /* frame or string */
};

EXPORT int probe_open(char *why, size_t size);
EXPORT int probe_start(int calls, char *why, size_t size);
EXPORT void probe_stop(void);
EXPORT void probe_forked(void);
EXPORT void probe_clear(void);
EXPORT size_t probe_take(struct probe_call *ret, size_t cap, uint64_t *overrun);
EXPORT size_t probe_string(uint32_t id, char *text, size_t size);
EXPORT void probe_frame(uint32_t id, uint32_t ret[static 3]);
EXPORT uint64_t probe_drops(uint64_t *nested);
EXPORT uint64_t probe_short(void);

static struct flight *flight;
static struct ring_tail tails[FLIGHT_LANE_CNT];

int probe_open(char *why, size_t size)
{
	int err;

	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (flight == MAP_FAILED)
		return -ENOMEM;
	err = nametable_open(flight);
	if (err < 0)
		return err;
	lane_attach(flight);
	lane_open_window(1);
	return pytrace_open(why, size);
}

int probe_start(int calls, char *why, size_t size)
{
	return pytrace_start(calls != 0, why, size);
}

void probe_stop(void)
{
	pytrace_stop();
}

/* As the agent does: the recorder is let go. */
void probe_forked(void)
{
	pytrace_forked();
	lane_attach(NULL);
	(void)munmap(flight, sizeof(*flight));
}

/* Forgets what was recorded. */
void probe_clear(void)
{
	for (size_t i = 0; i < FLIGHT_LANE_CNT; i++)
		tails[i] = (struct ring_tail){ .taken = flight->lanes[i].window_head };
}

size_t probe_take(struct probe_call *ret, size_t cap, uint64_t *overrun)
{
	struct ring_record record;
	size_t cnt = 0;

	*overrun = 0;
	for (size_t i = 0; i < FLIGHT_LANE_CNT; i++) {
		while (cnt < cap &&
		       ring_take(&tails[i], flight->window_records[i], FLIGHT_WINDOW_RECORD_CNT,
				 &flight->lanes[i].window_head, &record, 1) == 1)
			ret[cnt++] = (struct probe_call){ flight->lanes[i].tid, record.kind,
							  record.time_ns, record.value,
							  (uint32_t)record.extra };
		*overrun += tails[i].overrun;
	}
	return cnt;
}

size_t probe_string(uint32_t id, char *text, size_t size)
{
	size_t len = MIN((size_t)flight->strings[id].len, size);

	memcpy(text, &flight->text[flight->strings[id].off], len);
	return len;
}

void probe_frame(uint32_t id, uint32_t ret[static 3])
{
	ret[0] = flight->frames[id].file;
	ret[1] = flight->frames[id].name;
	ret[2] = flight->frames[id].first_line;
}

/* Calls of threads without a lane, and those nested too deep. */
uint64_t probe_drops(uint64_t *nested)
{
	*nested = flight->drops.nested;
	return flight->drops.lanes;
}

/* Calls that were left out. */
uint64_t probe_short(void)
{
	return flight->drops.calls;
}
