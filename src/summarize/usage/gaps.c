/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/usage/gaps.h"

#define GAPS_WALKED_NS 1000000 /* a longer interval may have many gaps: they are searched */

int gaps_add(gap_list *gaps, int64_t start_ns, int64_t end_ns)
{
	struct gap next = { .start_ns = start_ns, .end_ns = end_ns };

	if (gaps->cnt > 0) {
		const struct gap *last = &gaps->data[gaps->cnt - 1];

		next.before_ns = last->before_ns + (last->end_ns - last->start_ns);
	}
	return vec_push(gaps, next);
}

struct gap *gaps_last(const gap_list *gaps, int64_t time_ns)
{
	size_t low = 0, high = gaps->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (gaps->data[mid].start_ns <= time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? &gaps->data[low - 1] : NULL;
}

static int64_t idle_until(const gap_list *gaps, int64_t time_ns)
{
	const struct gap *gap = gaps_last(gaps, time_ns);

	return gap == NULL ? 0 : gap->before_ns + (MIN(time_ns, gap->end_ns) - gap->start_ns);
}

int64_t gaps_within(const gap_list *gaps, int64_t start_ns, int64_t end_ns)
{
	return end_ns > start_ns ? idle_until(gaps, end_ns) - idle_until(gaps, start_ns) : 0;
}

/* The idle time before time_ns, from gap `at` on, the last known to begin at it or before. */
static int64_t idle_from(const gap_list *gaps, size_t *at, int64_t time_ns)
{
	const struct gap *gap;

	while (*at + 1 < gaps->cnt && gaps->data[*at + 1].start_ns <= time_ns)
		(*at)++;
	gap = &gaps->data[*at];
	return gap->before_ns + MAX(MIN(time_ns, gap->end_ns) - gap->start_ns, 0);
}

int64_t gaps_within_next(const gap_list *gaps, size_t *near, int64_t start_ns, int64_t end_ns)
{
	int64_t before_ns;
	size_t at;

	if (gaps->cnt == 0 || end_ns <= start_ns)
		return 0;
	before_ns = idle_from(gaps, near, start_ns);
	at = *near;
	if (end_ns - start_ns > GAPS_WALKED_NS)
		return gaps_within(gaps, start_ns, end_ns);
	return idle_from(gaps, &at, end_ns) - before_ns;
}
