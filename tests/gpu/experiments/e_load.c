/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known work for a GPU, for experiments E5, E6, E7 and E10, which look at it from another process.
 *
 *	e_load spin SECONDS [recorded]	kernels of 5 ms, 15 ms apart; recorded: in a deep window
 *	e_load h2d|d2h|set SECONDS	copies to the device, from it, sets on it
 *
 * Prints one line of JSON: when (CLOCK_MONOTONIC), how many bytes, and the kernels' times.
 * Exit status 77: no device.
 */
#include "base/clock.h"
#include "e_driver.h"
#include "e_window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPIN_NS (5 * NSEC_PER_MSEC)
#define GAP_NS (15 * NSEC_PER_MSEC)
#define COPY_BYTES ((size_t)64 << 20)

struct memory {
	uint64_t device;
	void *host; /* pinned */
};

/* Takes seconds of time; returns CUDA's status. */
static int spin(struct driver *driver, double seconds)
{
	const struct timespec gap = { .tv_nsec = GAP_NS };
	int64_t end_ns = clock_mono_ns() + (int64_t)(seconds * (double)NSEC_PER_SEC);
	int status = 0;

	while (status == 0 && clock_mono_ns() < end_ns) {
		status = driver_spin(driver, SPIN_NS);
		if (status == 0)
			status = driver_synchronize(driver);
		(void)nanosleep(&gap, NULL);
	}
	return status;
}

static int move_once(const struct driver *driver, const char *mode, const struct memory *memory)
{
	const struct driver_functions *f = driver_functions(driver);
	void *stream = driver_stream(driver);

	if (strcmp(mode, "h2d") == 0)
		return f->copy_to(memory->device, memory->host, COPY_BYTES, stream);
	if (strcmp(mode, "d2h") == 0)
		return f->copy_from(memory->host, memory->device, COPY_BYTES, stream);
	return f->set(memory->device, 0, COPY_BYTES / sizeof(uint32_t), stream);
}

/* Once at least. */
static int move(struct driver *driver, const char *mode, double seconds, uint64_t *ret_bytes)
{
	struct memory memory;
	int64_t end_ns;
	int status = driver_functions(driver)->alloc(&memory.device, COPY_BYTES);

	if (status == 0)
		status = driver_functions(driver)->alloc_host(&memory.host, COPY_BYTES);
	end_ns = clock_mono_ns() + (int64_t)(seconds * (double)NSEC_PER_SEC);
	do {
		if (status == 0)
			status = move_once(driver, mode, &memory);
		if (status == 0)
			status = driver_synchronize(driver);
		*ret_bytes += status == 0 ? COPY_BYTES : 0;
	} while (status == 0 && clock_mono_ns() < end_ns);
	return status;
}

static void print_spins(const struct window *window)
{
	printf(", \"kernels\": %" PRIu64 ", \"spins\": [", window->kernels);
	for (size_t i = 0; i < window->spin_cnt; i++)
		printf("%s[%" PRId64 ", %" PRId64 "]", i > 0 ? ", " : "", window->spins[i].begin_ns,
		       window->spins[i].end_ns);
	printf("]");
}

static int run_spin(struct driver *driver, double seconds, bool recorded)
{
	int64_t begin_ns = clock_mono_ns();
	char why[128] = "";
	int status = recorded ? window_open(why) : 0;

	if (status < 0) {
		fprintf(stderr, "e_load: %s\n", why);
		return status == -ENOTSUP ? 77 : 2;
	}
	status = spin(driver, seconds);
	printf("{\"load\": \"spin\", \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
	       ", \"status\": %d",
	       begin_ns, clock_mono_ns(), status);
	if (recorded)
		print_spins(window_close());
	printf("}\n");
	return status == 0 ? 0 : 2;
}

static int run_move(struct driver *driver, const char *mode, double seconds)
{
	int64_t begin_ns = clock_mono_ns();
	uint64_t bytes = 0;
	int status;

	if (driver_is_double(driver)) {
		fprintf(stderr, "e_load: the double of a GPU has no memory\n");
		return 77;
	}
	status = move(driver, mode, seconds, &bytes);
	printf("{\"load\": \"%s\", \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
	       ", \"bytes\": %" PRIu64 ", \"status\": %d}\n",
	       mode, begin_ns, clock_mono_ns(), bytes, status);
	return status == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;
	char why[DRIVER_WHY] = "";
	struct driver *driver;
	int status = driver_open(&driver, NULL, why);

	if (status != 0) {
		fprintf(stderr, "e_load: %s\n", why);
		return status;
	}
	if (strcmp(mode, "spin") == 0)
		return run_spin(driver, seconds, argc > 3 && strcmp(argv[3], "recorded") == 0);
	if (strcmp(mode, "h2d") == 0 || strcmp(mode, "d2h") == 0 || strcmp(mode, "set") == 0)
		return run_move(driver, mode, seconds);
	fprintf(stderr, "usage: e_load spin|h2d|d2h|set SECONDS [recorded]\n");
	return 2;
}
