/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiment E9: CUDA events as a means to time kernels: what two of them cost a launch, what a
 * query costs, what happens to them in a capture, how far float milliseconds drift from the kernels' own
 * times over so many seconds. Prints one line of JSON; e9_events.py judges it. Exit status 77: no
 * device.
 *
 *	e_events [SECONDS]	[20]
 */
#include "base/clock.h"
#include "e_driver.h"
#include "e_window.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 256
#define ROUNDS 100
#define DRIFT_SECONDS 20 /* at most */
#define SPIN_NS (2 * NSEC_PER_MSEC)

static struct {
	struct driver *driver;
	const struct driver_functions *f;
	void *stream;
	void *events[2 * BATCH];
} e;

static int make_events(void)
{
	int status = 0;

	for (size_t i = 0; i < ARRAY_SIZE(e.events) && status == 0; i++)
		status = e.f->event_create(&e.events[i], 0);
	return status;
}

/* The least of all rounds, for a launch, in ns; negative: CUDA's status. */
static double time_launches(bool with_events)
{
	int64_t least_ns = INT64_MAX;
	int status = 0;

	for (int round = 0; round < ROUNDS && status == 0; round++) {
		int64_t begin_ns = clock_mono_ns();

		for (size_t i = 0; i < BATCH && status == 0; i++) {
			if (with_events)
				(void)e.f->event_record(e.events[2 * i], e.stream);
			status = driver_launch(e.driver);
			if (with_events)
				(void)e.f->event_record(e.events[2 * i + 1], e.stream);
		}
		least_ns = MIN(least_ns, clock_mono_ns() - begin_ns);
		if (status == 0)
			status = driver_synchronize(e.driver);
	}
	return status == 0 ? (double)least_ns / BATCH : -(double)status;
}

static double time_queries(void)
{
	int64_t begin_ns = clock_mono_ns();

	for (size_t i = 0; i < ARRAY_SIZE(e.events); i++)
		(void)e.f->event_query(e.events[i]);
	return (double)(clock_mono_ns() - begin_ns) / (double)ARRAY_SIZE(e.events);
}

/* What a query says of an event that was recorded into a capture. */
static int query_captured(int *ret_capturing)
{
	const int relaxed = 2;
	void *graph = NULL;
	int status;

	*ret_capturing = -1;
	if (e.f->begin_capture(e.stream, relaxed) != 0)
		return -1;
	(void)e.f->is_capturing(e.stream, ret_capturing);
	(void)e.f->event_record(e.events[0], e.stream);
	(void)driver_launch(e.driver);
	status = e.f->event_query(e.events[0]);
	(void)e.f->end_capture(e.stream, &graph);
	return status;
}

/*
 * Kernels of 2 ms, 100 ms apart, each between two events, in a deep window: the time since the
 * first event as float milliseconds, against CUPTI's. The greatest difference, in us.
 */
static int measure_drift(size_t wanted, double *ret_us, size_t *ret_cnt)
{
	const struct timespec pause = { .tv_nsec = 100 * NSEC_PER_MSEC };
	static float since_ms[10 * DRIFT_SECONDS];
	const struct window *window;
	char why[128] = "";
	size_t cnt = 0;

	*ret_us = 0;
	if (window_open(why) < 0)
		return -1;
	(void)e.f->event_record(e.events[0], e.stream);
	for (; cnt < wanted; cnt++) {
		(void)e.f->event_record(e.events[1], e.stream);
		(void)driver_spin(e.driver, SPIN_NS);
		(void)driver_synchronize(e.driver);
		if (e.f->event_elapsed(&since_ms[cnt], e.events[0], e.events[1]) != 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	window = window_close();
	*ret_cnt = MIN(cnt, window->spin_cnt);
	for (size_t i = 1; i < *ret_cnt; i++) {
		int64_t own_ns = window->spins[i].begin_ns - window->spins[0].begin_ns;
		double events_ns = ((double)since_ms[i] - (double)since_ms[0]) * 1e6;

		*ret_us = fmax(*ret_us, fabs(events_ns - (double)own_ns) / 1e3);
	}
	return cnt == wanted && window->spin_cnt == cnt ? 0 : -1;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : DRIFT_SECONDS;
	char why[DRIVER_WHY] = "";
	double plain_ns, evented_ns, query_ns, drift_us = 0;
	int captured, capturing, drift;
	size_t drift_cnt = 0;
	int status = driver_open(&e.driver, NULL, why);

	if (status == 0 && driver_is_double(e.driver)) {
		status = 77;
		(void)snprintf(why, sizeof(why), "the double of a GPU has no events");
	}
	if (status != 0) {
		fprintf(stderr, "e_events: %s\n", why);
		return status;
	}
	seconds = MIN(MAX(seconds, 1L), (long)DRIFT_SECONDS);
	e.f = driver_functions(e.driver);
	e.stream = driver_stream(e.driver);
	if (make_events() != 0)
		return 2;
	plain_ns = time_launches(false);
	evented_ns = time_launches(true);
	query_ns = time_queries();
	captured = query_captured(&capturing);
	drift = measure_drift(10 * (size_t)seconds, &drift_us, &drift_cnt);
	printf("{\"launch_ns\": %.1f, \"launch_with_events_ns\": %.1f, \"query_ns\": %.1f, "
	       "\"captured_query\": %d, \"capturing\": %d, \"drift_whole\": %s, \"drift_us\": %.3f, "
	       "\"drift_kernels\": %zu, \"drift_seconds\": %ld}\n",
	       plain_ns, evented_ns, query_ns, captured, capturing, drift == 0 ? "true" : "false",
	       drift_us, drift_cnt, seconds);
	return 0;
}
