/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a record of CUPTI on the helper thread: read, named, written as 32 bytes into a ring.
 * The records are synthetic; CUPTI's own work for them isn't in the figure.
 */
#include "agent/gpu/buffers.h"
#include "agent/gpu/cupti/cupti_layout.h"
#include "agent/gpu/cupti/cupti_records.h"
#include "base/clock.h"
#include "format/shared/recorder.h"
#include "model/elements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_BYTES 216u
#define RECORD_CNT (BUFFERS_BYTES / KERNEL_BYTES)
#define NAME_CNT 200u
#define ROUNDS 400u

static struct ring_record ring[FLIGHT_WINDOW_RECORD_CNT];
static _Atomic uint64_t head;
static uint32_t name_cnt;

static uint32_t sink_name(_unused_ const char *text, _unused_ size_t len)
{
	return ++name_cnt;
}

static void sink_event(const struct gputrace_event *event)
{
	struct ring_record record = {
		.time_ns = event->start_ns,
		.value = event->dur_ns,
		.kind = FLIGHT_GPU_KERNEL,
		.extra = flight_gpu_extra(event->correlation, elements_encode((int64_t)event->size),
					  event->name),
	};

	ring_push(ring, FLIGHT_WINDOW_RECORD_CNT, &head, &record);
}

static void sink_lose(_unused_ enum gputrace_loss loss, _unused_ uint64_t cnt)
{
}

static void sink_device(_unused_ const char *name)
{
}

static const struct gputrace_sink sink = { sink_name, sink_event, sink_lose, sink_device };

static uint32_t next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record == NULL ? buffer : (uint8_t *)*record + KERNEL_BYTES;

	if (at + KERNEL_BYTES > buffer + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = at;
	return CUPTI_OK;
}

static void fill(uint8_t *buffer, char names[NAME_CNT][32])
{
	for (size_t i = 0; i < RECORD_CNT; i++) {
		struct cupti_kernel kernel = { .kind = CUPTI_KIND_CONCURRENT_KERNEL,
					       .start = 1000 + i,
					       .end = 2000 + i,
					       .stream = 7 + (uint32_t)i % 4,
					       .grid = { 128, 1, 1 },
					       .block = { 256, 1, 1 },
					       .correlation = (uint32_t)i,
					       .name = names[i * 7 % NAME_CNT] };

		memcpy(buffer + i * KERNEL_BYTES, &kernel, sizeof(kernel));
	}
}

int main(void)
{
	static struct cupti_reader reader = { .sink = &sink, .next = next };
	static char names[NAME_CNT][32];
	static struct buffers buffers;
	int64_t best_ns = INT64_MAX;

	if (buffers_open(&buffers, BUFFERS_CNT, BUFFERS_BYTES) < 0)
		return 1;
	for (size_t i = 0; i < NAME_CNT; i++)
		(void)snprintf(names[i], sizeof(names[i]), "kernel_%zu", i);
	for (size_t i = 0; i < ROUNDS; i++) {
		uint8_t *buffer = buffers_take(&buffers);
		size_t valid, cnt;
		void *record = NULL;
		int64_t begin_ns;

		fill(buffer, names);
		begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
		if (!buffers_fill(&buffers, buffer, RECORD_CNT * KERNEL_BYTES) ||
		    buffers_next(&buffers, &valid) != buffer)
			return 1;
		cnt = cupti_reader_read(&reader, buffer, valid, &record, SIZE_MAX);
		buffers_release(&buffers, buffer);
		best_ns = MIN(best_ns,
			      (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / (int64_t)cnt);
	}
	printf("cupti record: %lld ns of CPU (best of %u buffers of %zu kernels, %u names), "
	       "%zu bytes handed over\n",
	       (long long)best_ns, ROUNDS, RECORD_CNT, name_cnt, sizeof(struct ring_record));
	return 0;
}
