/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/pictures/origin.h"

#include "base/stats.h"
#include "base/strtab.h"

#include <errno.h>
#include <string.h>

/* Clocks of traces may count from the start of the machine or of the program. */
#define PLAUSIBLE_FROM_NS (INT64_C(946684800) * NSEC_PER_SEC) /* the year 2000 */
#define PLAUSIBLE_TO_NS (INT64_C(4102444800) * NSEC_PER_SEC)  /* the year 2100 */

static bool is_wall_clock(const struct fingerprint *fp)
{
	int64_t begin_ns = fp->window_start_wall_ns;

	return begin_ns >= PLAUSIBLE_FROM_NS && begin_ns < PLAUSIBLE_TO_NS && fp->window_ns >= 0 &&
	       fp->window_ns < PLAUSIBLE_TO_NS - begin_ns;
}

/* The median: the clock of one host may be wrong. */
static int find_times(const struct fingerprint *const *fps, size_t cnt, struct report_origin *ret)
{
	_cleanup_free_ double *begins = calloc(cnt + 1, sizeof(*begins));
	_cleanup_free_ double *lengths = calloc(cnt + 1, sizeof(*lengths));
	size_t known = 0;

	if (begins == NULL || lengths == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (!is_wall_clock(fps[i]))
			continue;
		begins[known] = (double)(fps[i]->window_start_wall_ns - PLAUSIBLE_FROM_NS);
		lengths[known++] = (double)fps[i]->window_ns;
	}
	if (known == 0)
		return 0;
	ret->begin_ns = PLAUSIBLE_FROM_NS + (int64_t)stats_median(begins, known);
	ret->end_ns = ret->begin_ns + (int64_t)stats_median(lengths, known);
	return 0;
}

static void find_steps(const struct fingerprint *const *fps, size_t cnt, struct report_origin *ret)
{
	for (size_t w = 0; w < cnt; w++) {
		for (size_t i = 0; i < fps[w]->iteration_cnt; i++) {
			int64_t number = fps[w]->iterations[i].number;

			if (number < 0)
				continue;
			if (!ret->steps_known || number < ret->first_step)
				ret->first_step = number;
			if (!ret->steps_known || number > ret->last_step)
				ret->last_step = number;
			ret->steps_known = true;
		}
	}
}

static int copy_hosts(const struct strtab *hosts, struct report *out)
{
	const char **list = arena_calloc(&out->arena, hosts->cnt, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 1; i < hosts->cnt; i++) { /* id 0 is the empty text */
		list[i - 1] = arena_strdup(&out->arena, strtab_text(hosts, (uint32_t)i));
		if (list[i - 1] == NULL)
			return -ENOMEM;
	}
	out->origin.hosts = list;
	out->origin.host_cnt = hosts->cnt - 1;
	return 0;
}

static int find_hosts(const struct fingerprint *const *fps, size_t cnt, struct report *out)
{
	struct strtab hosts = { 0 };
	int error = strtab_init(&hosts);

	for (size_t i = 0; i < cnt && error == 0; i++) {
		const char *host = fps[i]->host;

		if (strtab_intern(&hosts, host, strlen(host)) == STRTAB_NONE)
			error = -ENOMEM;
	}
	if (error == 0)
		error = copy_hosts(&hosts, out);
	strtab_done(&hosts);
	return error;
}

int origin_fill(const struct fingerprint *const *fps, size_t cnt, struct report *out)
{
	int error = find_times(fps, cnt, &out->origin);

	if (error == 0)
		error = find_hosts(fps, cnt, out);
	if (error == 0)
		find_steps(fps, cnt, &out->origin);
	return error;
}
