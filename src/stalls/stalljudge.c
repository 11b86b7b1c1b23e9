/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/stalljudge.h"

#include "model/thresholds.h"
#include "stalls/stalljudge_parts.h"

#include <errno.h>

const struct stall_part *judge_find_part(const struct judge *judge, const struct stall_part *key)
{
	size_t low = 0, high = judge->verdict->parts.cnt;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct stall_part *part = &judge->verdict->parts.data[middle];

		if (part->thread == key->thread && part->begin_ns == key->begin_ns)
			return part;
		if (part->thread < key->thread ||
		    (part->thread == key->thread && part->begin_ns < key->begin_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct ordered {
	struct stall_finding finding;
	uint32_t was;
};

static int compare(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->finding.matters != y->finding.matters)
		return x->finding.matters ? -1 : 1;
	if (x->finding.total_ns != y->finding.total_ns)
		return x->finding.total_ns > y->finding.total_ns ? -1 : 1;
	return x->was < y->was ? -1 : x->was > y->was;
}

/* Findings that matter first, then the longest; parts keep their finding. */
static int order(struct stall_verdict *verdict)
{
	const size_t cnt = verdict->findings.cnt;
	_cleanup_free_ struct ordered *ordered = calloc(MAX(cnt, (size_t)1), sizeof(*ordered));
	_cleanup_free_ uint32_t *place = calloc(MAX(cnt, (size_t)1), sizeof(*place));

	if (ordered == NULL || place == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++)
		ordered[i] = (struct ordered){ verdict->findings.data[i], i };
	qsort(ordered, cnt, sizeof(*ordered), compare);
	for (uint32_t i = 0; i < cnt; i++) {
		verdict->findings.data[i] = ordered[i].finding;
		place[ordered[i].was] = i;
		verdict->stall_cnt +=
			ordered[i].finding.matters &&
			stallclass_about(ordered[i].finding.class)->kind == STALL_KIND_STALL;
	}
	vec_foreach(part, &verdict->parts) {
		if (part->finding != UINT32_MAX)
			part->finding = place[part->finding];
	}
	return 0;
}

/* Whether too much was not seen for the answer "no stall". */
static bool is_incomplete(const struct stall_verdict *verdict)
{
	const struct stall_recording *recording = verdict->recording;
	const int64_t window_ns = recording->end_ns - recording->begin_ns;

	if (recording->lost > 0 || recording->dropped > 0 ||
	    (recording->sources & STALL_BY_SWITCHES) == 0)
		return true;
	vec_foreach(finding, &verdict->findings) {
		if (finding->class == STALL_UNKNOWN_WAIT &&
		    (double)finding->total_ns >= HUNT_UNKNOWN_FRAC * (double)window_ns)
			return true;
	}
	vec_foreach(account, &verdict->accounts) {
		if (account->judged && account->unpaired > 2)
			return true;
	}
	return false;
}

int stalljudge(const struct stall_recording *recording, struct stall_verdict *ret)
{
	struct stall_verdict verdict = { .recording = recording };
	struct judge judge = { .recording = recording, .verdict = &verdict };
	int error = vec_reserve(&verdict.accounts, MAX(recording->threads.cnt, (size_t)1));

	for (size_t i = 0; i < recording->threads.cnt && error == 0; i++)
		error = vec_push(&verdict.accounts, (struct stall_account){ 0 });
	if (error == 0)
		error = cpuruns_make(&judge.runs, recording);
	if (error == 0)
		error = gaps_find(recording, verdict.accounts.data, &judge.gaps);
	if (error == 0)
		error = judge_parts(&judge);
	if (error == 0)
		error = judge_findings(&judge);
	if (error == 0)
		error = judge_kernel(&judge);
	if (error == 0)
		error = order(&verdict);
	cpuruns_done(&judge.runs);
	vec_done(&judge.gaps);
	if (error < 0) {
		stallverdict_done(&verdict);
		return error;
	}
	verdict.incomplete = is_incomplete(&verdict);
	*ret = verdict;
	return 0;
}
