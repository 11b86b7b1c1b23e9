/* SPDX-License-Identifier: Apache-2.0 */
/* How often, how long and how regularly the parts of a finding came. */
#include "model/thresholds.h"
#include "stalls/stalljudge_parts.h"

#include <errno.h>
#include <string.h>

struct span {
	int64_t begin_ns, end_ns;
	uint32_t thread;
};

typedef VEC(struct span) span_vec;

/* Parts of the finding; those at most `join_ns` apart are one. By thread and time. */
static int list_spans(const struct judge *judge, uint32_t finding, int64_t join_ns, span_vec *ret)
{
	vec_foreach(part, &judge->verdict->parts) {
		struct span *last = ret->cnt > 0 ? &ret->data[ret->cnt - 1] : NULL;

		if (part->finding != finding)
			continue;
		if (last != NULL && last->thread == part->thread &&
		    part->begin_ns - last->end_ns <= join_ns) {
			last->end_ns = MAX(last->end_ns, part->end_ns);
			continue;
		}
		if (vec_reserve(ret, ret->cnt + 1) < 0 || ret->data == NULL)
			return -ENOMEM;
		ret->data[ret->cnt++] = (struct span){ part->begin_ns, part->end_ns, part->thread };
	}
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int64_t median(int64_t *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare_numbers);
	return values[cnt / 2];
}

static int measure(struct judge *judge, uint32_t index)
{
	struct stall_finding *finding = &judge->verdict->findings.data[index];
	span_vec spans = { 0 };
	int64_t *lengths = NULL;
	int error = list_spans(judge, index, HUNT_JOIN_NS, &spans);

	if (error == 0 && spans.cnt > 0) {
		lengths = calloc(spans.cnt, sizeof(*lengths));
		error = lengths != NULL ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < spans.cnt && error == 0; i++) {
		lengths[i] = spans.data[i].end_ns - spans.data[i].begin_ns;
		finding->longest_ns = MAX(finding->longest_ns, lengths[i]);
		finding->thread_bits |= UINT64_C(1) << spans.data[i].thread;
	}
	finding->cnt = spans.cnt;
	if (error == 0 && spans.cnt > 0)
		finding->median_ns = median(lengths, spans.cnt);
	free(lengths);
	vec_done(&spans);
	return error;
}

/* The chain of the longest part, and the sum. */
static void describe(struct judge *judge, uint32_t index)
{
	struct stall_finding *finding = &judge->verdict->findings.data[index];
	int64_t longest_ns = -1;

	vec_foreach(part, &judge->verdict->parts) {
		const int64_t ns = part->end_ns - part->begin_ns;

		if (part->finding != index)
			continue;
		finding->total_ns += ns;
		if (ns > longest_ns) {
			longest_ns = ns;
			finding->chain = part->chain;
		}
	}
}

/* Period of bursts: spans[cnt], by time. 0: they are not periodic. */
static int find_period(const struct judge *judge, const struct span *spans, size_t cnt,
		       int64_t *ret_ns)
{
	_cleanup_free_ int64_t *steps = NULL;
	int64_t middle;

	*ret_ns = 0;
	/* When a burst began that is older than the window is not known. */
	if (cnt > 0 && spans[0].begin_ns <= judge->recording->begin_ns) {
		spans++;
		cnt--;
	}
	if (cnt < HUNT_PERIODS_MIN + 1)
		return 0;
	steps = calloc(cnt - 1, sizeof(*steps));
	if (steps == NULL)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < cnt; i++)
		steps[i] = spans[i + 1].begin_ns - spans[i].begin_ns;
	middle = median(steps, cnt - 1);
	if ((double)(steps[cnt - 2] - steps[0]) < HUNT_PERIOD_SPREAD * (double)middle)
		*ret_ns = middle;
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Whether the threads come one after the other, always in the order of the first round. */
static bool in_turn(span_vec *spans)
{
	uint64_t bits = 0;
	size_t round = 0, kept = 0;

	qsort(spans->data, spans->cnt, sizeof(*spans->data), compare_spans);
	while (round < spans->cnt && (bits >> spans->data[round].thread & 1) == 0)
		bits |= UINT64_C(1) << spans->data[round++].thread;
	if (round < 2 || spans->cnt < 3 * round)
		return false;
	for (size_t i = round; i < spans->cnt; i++)
		kept += spans->data[i].thread == spans->data[i - round].thread;
	return (double)kept >= HUNT_TURN_FRAC * (double)(spans->cnt - round);
}

/* Bursts of all threads as if they were one: spans by time. Returns how many. */
static size_t merge_bursts(struct span *spans, size_t cnt)
{
	size_t kept = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct span *last = kept > 0 ? &spans[kept - 1] : NULL;

		if (last != NULL && spans[i].begin_ns - last->end_ns <= HUNT_BURST_NS)
			last->end_ns = MAX(last->end_ns, spans[i].end_ns);
		else
			spans[kept++] = spans[i];
	}
	return kept;
}

/* Of the thread with the most bursts. */
static int find_thread_rhythm(const struct judge *judge, struct stall_finding *finding,
			      const span_vec *bursts)
{
	int error = 0;

	for (size_t first = 0, end; first < bursts->cnt && error == 0; first = end) {
		end = first;
		while (end < bursts->cnt && bursts->data[end].thread == bursts->data[first].thread)
			end++;
		if (end - first <= finding->burst_cnt)
			continue;
		finding->burst_cnt = end - first;
		error = find_period(judge, &bursts->data[first], end - first, &finding->period_ns);
	}
	return error;
}

/* A cause may hit another thread each time, so that none shows its period: all together do. */
static int find_rhythm(struct judge *judge, uint32_t index)
{
	struct stall_finding *finding = &judge->verdict->findings.data[index];
	span_vec bursts = { 0 };
	int64_t period_ns = 0;
	int error = list_spans(judge, index, HUNT_BURST_NS, &bursts);
	size_t cnt;

	if (error == 0)
		error = find_thread_rhythm(judge, finding, &bursts);
	if (error == 0 && bursts.cnt > 0) {
		finding->in_turn = in_turn(&bursts);
		cnt = merge_bursts(bursts.data, bursts.cnt);
		error = find_period(judge, bursts.data, cnt, &period_ns);
		if (period_ns > 0) {
			finding->burst_cnt = cnt;
			finding->period_ns = period_ns;
		}
	}
	vec_done(&bursts);
	return error;
}

int judge_rhythm(struct judge *judge, uint32_t finding)
{
	int error;

	describe(judge, finding);
	error = measure(judge, finding);
	return error < 0 ? error : find_rhythm(judge, finding);
}

/* The times in which a process got a CPU or was sampled; those close to each other are one. */
static int list_activity(const struct judge *judge, uint32_t pid, span_vec *ret)
{
	vec_foreach(event, &judge->recording->events) {
		struct span *last = ret->cnt > 0 ? &ret->data[ret->cnt - 1] : NULL;

		if (event->pid != pid || (event->kind != STALL_RUN && event->kind != STALL_SAMPLE))
			continue;
		if (last != NULL && event->time_ns - last->end_ns <= HUNT_BURST_NS) {
			last->end_ns = event->time_ns;
			continue;
		}
		if (vec_reserve(ret, ret->cnt + 1) < 0 || ret->data == NULL)
			return -ENOMEM;
		ret->data[ret->cnt++] = (struct span){ event->time_ns, event->time_ns, 0 };
	}
	return 0;
}

int judge_culprit_rhythm(struct judge *judge, uint32_t index)
{
	struct stall_finding *finding = &judge->verdict->findings.data[index];
	span_vec spans = { 0 };
	int error = 0;

	if (finding->period_ns > 0 || finding->culprit_cnt == 0)
		return 0;
	error = list_activity(judge, finding->culprits[0].pid, &spans);
	if (error == 0 && spans.cnt > 0)
		error = find_period(judge, spans.data, spans.cnt, &finding->period_ns);
	vec_done(&spans);
	return error;
}
