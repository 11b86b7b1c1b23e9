/* SPDX-License-Identifier: Apache-2.0 */
/* What the test of the hook into torch drives with ctypes: the hook, and the recorder it fills. */
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/torch/torchcomms.h"
#include "agent/torch/torchops.h"
#include "base/clock.h"
#include "base/compat.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PROBE __attribute__((visibility("default")))

PROBE int probe_open(const char *torch_version, char *why, size_t size);
PROBE int probe_check_begin(void);
PROBE int probe_check_end(char *why, size_t size);
PROBE int probe_collectives(bool on);
PROBE int probe_operators(bool on);
PROBE void probe_window(bool on);
PROBE void probe_shift_layout(const char *torch_version, const char *library, int by);
PROBE size_t probe_records(uint32_t lane, bool window, struct ring_record *ret, size_t cnt);
PROBE uint32_t probe_lane_tid(uint32_t lane);
PROBE size_t probe_string(uint32_t id, char *ret, size_t size);
PROBE uint64_t probe_nested(void);
PROBE int64_t probe_now_ns(void);

static struct flight *flight;

static void forget(void)
{
	lane_attach(NULL);
}

static int map_flight(void)
{
	void *memory = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	flight = memory;
	return nametable_open(flight);
}

int probe_open(const char *torch_version, char *why, size_t size)
{
	int error = flight == NULL ? map_flight() : 0;

	if (error < 0)
		return error;
	lane_attach(flight);
	(void)pthread_atfork(NULL, NULL, forget);
	return torchops_open(torch_version, why, size);
}

int probe_check_begin(void)
{
	return torchops_check_begin();
}

int probe_check_end(char *why, size_t size)
{
	return torchops_check_end(why, size);
}

int probe_collectives(bool on)
{
	return torchops_watch_collectives(on);
}

int probe_operators(bool on)
{
	return torchops_watch_operators(on ? TORCHOPS_ELEMENTS : TORCHOPS_NONE);
}

void probe_window(bool on)
{
	if (on)
		lane_open_window(1);
	else
		lane_close_window();
}

/* As if the members of torch's objects lay elsewhere. */
void probe_shift_layout(const char *torch_version, const char *library, int by)
{
	static struct torch_layout shifted;
	struct torch_version version;

	if (torch_version_parse(torch_version, &version) < 0)
		return;
	shifted = *torch_layout_find(version);
	shifted.comms_rank = (uint16_t)(shifted.comms_rank + by);
	shifted.comms_collective = (uint16_t)(shifted.comms_collective + by);
	shifted.comms_in = (uint16_t)(shifted.comms_in + by);
	shifted.comms_out = (uint16_t)(shifted.comms_out + by);
	shifted.comms_first = (uint16_t)(shifted.comms_first + by);
	shifted.comms_dtype = (uint16_t)(shifted.comms_dtype + by);
	if (shifted.comms_group != 0)
		shifted.comms_group = (uint16_t)(shifted.comms_group + by);
	shifted.function_inputs = (uint16_t)(shifted.function_inputs + by);
	torchcomms_open(dlopen(library, RTLD_LAZY | RTLD_NOLOAD), &shifted);
}

static size_t copy_ring(const struct ring_record *records, uint32_t size, uint64_t head,
			struct ring_record *ret, size_t cnt)
{
	uint64_t from = head > size ? head - size : 0;
	size_t done;

	for (done = 0; done < cnt && from < head; done++, from++)
		ret[done] = records[from % size];
	return done;
}

size_t probe_records(uint32_t lane, bool window, struct ring_record *ret, size_t cnt)
{
	const struct flight_lane *from = &flight->lanes[lane];

	if (window)
		return copy_ring(flight->window_records[lane], FLIGHT_WINDOW_RECORD_CNT,
				 atomic_load(&from->window_head), ret, cnt);
	return copy_ring(flight->records[lane], FLIGHT_LANE_RECORD_CNT, atomic_load(&from->head),
			 ret, cnt);
}

uint32_t probe_lane_tid(uint32_t lane)
{
	return lane < FLIGHT_LANE_CNT ? atomic_load(&flight->lanes[lane].tid) : 0;
}

size_t probe_string(uint32_t id, char *ret, size_t size)
{
	const struct flight_string *string = &flight->strings[id];
	size_t len = MIN((size_t)string->len, size);

	memcpy(ret, &flight->text[string->off], len);
	return len;
}

uint64_t probe_nested(void)
{
	return atomic_load(&flight->drops.nested);
}

int64_t probe_now_ns(void)
{
	return clock_mono_ns();
}
