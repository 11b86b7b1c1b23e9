/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/loop.h"

#include "model/thresholds.h"

#include <stdio.h>
#include <string.h>

#define RUN_SLOTS 16u /* usual runs of loader calls, by the step that follows */
#define RUN_CNT 8u    /* latest runs that agree on what is usual */
#define RUN_TIMES 64u /* latest loader calls of a run */
#define LOOP_CLEAN_MAX (1u << 20)

/* How many loader calls in a row usually precede a step. */
struct runs {
	uint32_t latest[RUN_CNT];
	uint32_t cnt;
	uint32_t usual; /* 0: unknown */
	bool alike;	/* all of the latest */
};

/* Loader calls since the last step. */
struct pending {
	uint32_t cnt;
	int64_t times_ns[RUN_TIMES];
};

struct loop {
	struct sequence *sequence; /* of loader calls in a row as one, and steps */
	uint32_t repeat_cnt, lost_cnt;
	struct runs runs[RUN_SLOTS];
	struct pending pending;
	uint32_t extra_cnt;  /* unusual loader calls since the last match */
	bool partial;	     /* since the last match a run was too short */
	bool first_run;	     /* no run since the last match */
	uint32_t first_load; /* usual run at the beginning of an iteration */
	bool steps_known, user_marks;
	bool optimizer_known;
	uint32_t backward_cnt; /* backward passes without an optimizer */

	/* Steps apart. */
	bool apart;
	uint32_t unlearned_cnt; /* steps without a sequence */
	uint32_t irregular;	/* grows with iterations that have further steps */
	uint32_t clean_cnt;	/* iterations in a row without */
	uint32_t clean_needed;	/* as many end it */
	uint32_t kinds[LOOP_KIND_CNT];
	uint32_t kind_cnt;
	bool kinds_full;

	struct loop_match match;
};

struct loop *loop_new(const struct sequence_config *config)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->repeat_cnt = MAX(config->repeat_cnt, 2u);
	loop->lost_cnt = config->lost_cnt;
	loop->first_run = true;
	loop->clean_needed = LOOP_CLEAN_CNT / 2;
	loop->sequence = sequence_new(config);
	return loop->sequence != NULL ? loop : loop_free(loop);
}

struct loop *loop_free(struct loop *loop)
{
	if (loop == NULL)
		return NULL;
	sequence_free(loop->sequence);
	free(loop);
	return NULL;
}

/* --- runs of loader calls --- */

/* The most frequent of the latest; of several the smallest. */
static uint32_t most_frequent(const struct runs *runs)
{
	uint32_t cnt = MIN(runs->cnt, RUN_CNT), best = 0, best_votes = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t votes = 0;

		for (uint32_t k = 0; k < cnt; k++)
			votes += runs->latest[k] == runs->latest[i];
		if (votes > best_votes || (votes == best_votes && runs->latest[i] < best)) {
			best = runs->latest[i];
			best_votes = votes;
		}
	}
	return best;
}

/* Once the first runs are in, only as many alike change what is usual. Returns true if they do. */
static bool note_run(struct runs *runs, uint32_t len)
{
	uint32_t before = runs->usual;

	runs->latest[runs->cnt++ % RUN_CNT] = len;
	runs->alike = true;
	for (uint32_t i = 0; i < MIN(runs->cnt, RUN_CNT); i++)
		runs->alike = runs->alike && runs->latest[i] == len;
	if (runs->cnt <= RUN_CNT)
		runs->usual = most_frequent(runs);
	else if (runs->alike)
		runs->usual = len;
	return runs->cnt > RUN_CNT && runs->usual != before;
}

static int64_t time_of_load(const struct pending *pending, uint32_t from_last)
{
	uint32_t known = MIN(pending->cnt, RUN_TIMES), back = MIN(from_last, known);

	return pending->times_ns[(pending->cnt - back) % RUN_TIMES];
}

/* --- steps apart --- */

static uint32_t kind_of(struct loop *loop, uint32_t symbol)
{
	for (uint32_t i = 0; i < loop->kind_cnt; i++) {
		if (loop->kinds[i] == symbol)
			return i;
	}
	if (loop->kind_cnt == LOOP_KIND_CNT) {
		loop->kinds_full = true;
		return LOOP_KIND_NONE;
	}
	loop->kinds[loop->kind_cnt] = symbol;
	return loop->kind_cnt++;
}

static enum sequence_result begin_apart(struct loop *loop)
{
	/* Each time more is needed to leave: what looked alike was chance. */
	loop->clean_needed = MIN(2 * loop->clean_needed, LOOP_CLEAN_MAX);
	loop->apart = true;
	loop->irregular = loop->clean_cnt = 0;
	return SEQUENCE_LEARNED;
}

static enum sequence_result end_apart(struct loop *loop)
{
	loop->apart = false;
	loop->irregular = 0;
	return SEQUENCE_LEARNED;
}

static enum sequence_result match_apart(struct loop *loop, uint32_t kind, int64_t begin_ns,
					int64_t time_ns)
{
	loop->match = (struct loop_match){ .begin_ns = begin_ns,
					   .end_ns = time_ns,
					   .bound_ns = time_ns,
					   .skipped = loop->extra_cnt,
					   .kind = kind };
	loop->extra_cnt = 0;
	return SEQUENCE_MATCHED;
}

/* --- the sequence --- */

static enum sequence_result match_sequence(struct loop *loop)
{
	const struct sequence_match *match = sequence_borrow_match(loop->sequence);

	/* An iteration with further steps weighs as much as eight without. */
	if (match->skipped > 0)
		loop->irregular += LOOP_IRREGULAR;
	else if (loop->irregular > 0)
		loop->irregular--;
	loop->clean_cnt = match->skipped > 0 ? 0 : loop->clean_cnt + 1;
	loop->match = (struct loop_match){ .begin_ns = match->begin_ns,
					   .end_ns = match->end_ns,
					   .bound_ns = match->bound_ns,
					   .skipped = match->skipped + loop->extra_cnt,
					   .partial = loop->partial };
	loop->extra_cnt = 0;
	loop->partial = false;
	loop->first_run = true;
	return SEQUENCE_MATCHED;
}

static bool is_irregular(const struct loop *loop)
{
	return loop->irregular > LOOP_IRREGULAR * LOOP_IRREGULAR_MAX && !loop->kinds_full;
}

/* What the sequence says about a step, or about a loader call of a job without steps. */
static enum sequence_result follow(struct loop *loop, enum sequence_result result)
{
	bool matched = result == SEQUENCE_MATCHED;

	if (matched)
		(void)match_sequence(loop);
	if (loop->apart) {
		if (matched && loop->clean_cnt >= loop->clean_needed)
			return end_apart(loop);
		if (!matched && result != SEQUENCE_NONE)
			loop->clean_cnt = 0;
		return SEQUENCE_NONE;
	}
	if (matched && is_irregular(loop))
		return begin_apart(loop);
	loop->unlearned_cnt = sequence_is_learned(loop->sequence) ? 0 : loop->unlearned_cnt + 1;
	if (loop->unlearned_cnt >= LOOP_APART_PERIODS * loop->repeat_cnt && !loop->kinds_full &&
	    loop->steps_known)
		return begin_apart(loop);
	return result;
}

/* --- marks --- */

/* The loader calls before a step as one. Returns its time; 0: there was none. */
static int64_t flush_loads(struct loop *loop, uint16_t detail, bool *changed)
{
	struct runs *runs = &loop->runs[detail % RUN_SLOTS];
	uint32_t cnt = loop->pending.cnt;
	int64_t time_ns;

	*changed = false;
	if (cnt == 0)
		return 0;
	loop->partial = loop->partial || (runs->alike && cnt < runs->usual);
	*changed = note_run(runs, cnt);
	loop->extra_cnt += cnt > runs->usual ? cnt - runs->usual : 0;
	if (loop->first_run)
		loop->first_load = runs->usual;
	loop->first_run = false;
	time_ns = time_of_load(&loop->pending, runs->usual);
	loop->pending.cnt = 0;
	return time_ns;
}

static enum sequence_result worse(enum sequence_result a, enum sequence_result b)
{
	return a == SEQUENCE_NONE || a == SEQUENCE_MATCHED ? b : a;
}

static enum sequence_result take_step(struct loop *loop, uint16_t detail, int64_t time_ns)
{
	/* Before the first step the sequence has the loader calls already. */
	bool changed, was_apart = loop->apart, first = !loop->steps_known;
	int64_t load_ns = flush_loads(loop, detail, &changed);
	uint32_t kind = kind_of(loop, (uint32_t)detail << 1 | (load_ns != 0));
	enum sequence_result result = SEQUENCE_NONE;

	loop->steps_known = true;
	if (load_ns != 0 && !first)
		result = sequence_mark(loop->sequence, MARK_DATALOADER, 0, load_ns);
	result = worse(result, sequence_mark(loop->sequence, MARK_OPTIMIZER, detail, time_ns));
	result = follow(loop, result);
	if (loop->apart && was_apart && result == SEQUENCE_NONE)
		return match_apart(loop, kind, load_ns != 0 ? load_ns : time_ns, time_ns);
	/* More or fewer batches in an iteration: it is another one. */
	return changed && result == SEQUENCE_MATCHED ? SEQUENCE_LEARNED : result;
}

/* Before any step a job may only load: each call may be an iteration. */
static enum sequence_result take_load(struct loop *loop, int64_t time_ns)
{
	loop->pending.times_ns[loop->pending.cnt++ % RUN_TIMES] = time_ns;
	if (loop->steps_known)
		return SEQUENCE_NONE;
	return follow(loop, sequence_mark(loop->sequence, MARK_DATALOADER, 0, time_ns));
}

/* Parameters that the script updates itself, or in compiled code: a backward pass is a step. */
static enum sequence_result take_backward(struct loop *loop, int64_t time_ns)
{
	if (loop->optimizer_known || ++loop->backward_cnt < LOOP_BACKWARD_CNT)
		return SEQUENCE_NONE;
	return take_step(loop, SEQUENCE_BACKWARD, time_ns);
}

enum sequence_result loop_mark(struct loop *loop, uint16_t mark, uint16_t detail, int64_t time_ns)
{
	if (mark == MARK_ITERATION) {
		loop->user_marks = true;
		loop->apart = false;
		return follow(loop, sequence_mark(loop->sequence, mark, 0, time_ns));
	}
	if (loop->user_marks)
		return SEQUENCE_NONE;
	if (mark == MARK_OPTIMIZER) {
		loop->optimizer_known = true;
		return take_step(loop, detail, time_ns);
	}
	if (mark == MARK_BACKWARD)
		return take_backward(loop, time_ns);
	return mark == MARK_DATALOADER ? take_load(loop, time_ns) : SEQUENCE_NONE;
}

/* --- what is known --- */

bool loop_is_learned(const struct loop *loop)
{
	return loop->apart || sequence_is_learned(loop->sequence);
}

const struct loop_match *loop_borrow_match(const struct loop *loop)
{
	return &loop->match;
}

uint32_t loop_step_cnt(const struct loop *loop)
{
	return loop->apart ? 1 : sequence_step_cnt(loop->sequence);
}

void loop_describe(const struct loop *loop, char *buf, size_t size)
{
	if (loop->apart)
		(void)snprintf(buf, size, "each step of an optimizer, in no fixed order");
	else
		sequence_describe(loop->sequence, MAX(loop->first_load, 1u), buf, size);
}
