/* SPDX-License-Identifier: Apache-2.0 */
#include "report/test_pictures.h"

#include <stdlib.h>

double test_noise(int rank, int salt)
{
	uint32_t x = (uint32_t)rank * 2654435761U + (uint32_t)salt * 40503U;

	x ^= x >> 15;
	x *= 2246822519U;
	x ^= x >> 13;
	return (double)(x & 0xffff) / 65535.0;
}

double test_wobble(int rank, int salt, double spread)
{
	double sum = test_noise(rank, salt) + test_noise(rank, salt + 100) +
		     test_noise(rank, salt + 200);

	return 1.0 + spread * (sum / 1.5 - 1.0);
}

void test_set_origin(struct report *report, const char *command)
{
	static const char *const hosts[] = { "gpu-000", "gpu-001" };

	report->origin = (struct report_origin){
		.command = command,
		.run_id = command != NULL ? "20231114-220301-train" : NULL,
		.hosts = hosts,
		.host_cnt = 2,
		.begin_ns = INT64_C(1700000000000000000),
		.end_ns = INT64_C(1700000003280000000),
		.made_ns = command != NULL ? INT64_C(1700000009000000000) : 0,
		.steps_known = true,
		.first_step = 120,
		.last_step = 122,
	};
}

/* Makes a list of one text. */
static const char *const *one_text(struct report *report, const char *text)
{
	const char **list = arena_alloc(&report->arena, sizeof(*list));

	if (list == NULL)
		abort();
	*list = text;
	return list;
}

void test_set_named(struct report *report, const char *text)
{
	report->origin = (struct report_origin){
		.command = text, .run_id = text, .hosts = one_text(report, text), .host_cnt = 1
	};
}
