/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/jobstate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 8    /* listed one by one */
#define NUMBERED_MAX 8 /* processes in a note */

static size_t count_phase(const struct wire_state *states, size_t cnt, enum wire_phase phase)
{
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++)
		found += states[i].phase == phase;
	return found;
}

size_t jobstate_living(const struct wire_state *states, size_t cnt)
{
	return cnt - count_phase(states, cnt, PHASE_GONE) - count_phase(states, cnt, PHASE_SILENT);
}

const char *jobstate_word(const struct wire_state *states, size_t cnt, bool profiling)
{
	if (cnt == 0)
		return "waiting";
	if (jobstate_living(states, cnt) == 0)
		return "ended";
	if (profiling)
		return "profiling";
	if (count_phase(states, cnt, PHASE_BLOCKED) > 0)
		return "blocked";
	if (count_phase(states, cnt, PHASE_SLOW) > 0)
		return "slow";
	return count_phase(states, cnt, PHASE_LEARNING) > 0 ? "learning" : "watching";
}

static int by_rank(const void *a, const void *b)
{
	const struct wire_state *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void append_times(const struct wire_state *states, size_t cnt, struct str *out)
{
	struct wire_state shown[RANKS_MAX];
	int64_t shortest_ns = INT64_MAX, longest_ns = 0;
	size_t timed = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!wire_is_watched(&states[i]) || states[i].iteration_ns <= 0)
			continue;
		shortest_ns = MIN(shortest_ns, states[i].iteration_ns);
		longest_ns = MAX(longest_ns, states[i].iteration_ns);
		if (timed < ARRAY_SIZE(shown))
			shown[timed] = states[i];
		timed++;
	}
	if (timed == 0)
		return;
	str_append(out, " iteration_ms=");
	if (timed > ARRAY_SIZE(shown)) {
		str_printf(out, "%.1f..%.1f", (double)shortest_ns / NSEC_PER_MSEC,
			   (double)longest_ns / NSEC_PER_MSEC);
		return;
	}
	qsort(shown, timed, sizeof(*shown), by_rank);
	for (size_t i = 0; i < timed; i++)
		str_printf(out, "%s%.1f", i > 0 ? "," : "",
			   (double)shown[i].iteration_ns / NSEC_PER_MSEC);
}

/* Among slow workers, or if there are none: the slowest sets the pace. */
static bool sets_pace(const struct wire_state *state, const struct wire_state *than)
{
	if ((state->slow_since_step != 0) != (than->slow_since_step != 0))
		return state->slow_since_step != 0;
	return state->iteration_ns > than->iteration_ns;
}

void jobstate_pace(const struct wire_state *states, size_t cnt, struct jobstate_pace *ret)
{
	const struct wire_state none = { 0 }, *slowest = &none;
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < cnt; i++) {
		if (states[i].phase == PHASE_SILENT)
			continue;
		if (states[i].slow_since_step != 0)
			since = MIN(since, states[i].slow_since_step);
		if (sets_pace(&states[i], slowest))
			slowest = &states[i];
	}
	*ret = (struct jobstate_pace){ .slow_since_step = since != UINT64_MAX ? since : 0,
				       .now_ns = slowest->iteration_ns,
				       .baseline_ns = slowest->baseline_ns,
				       .best_ns = slowest->best_ns };
}

static void append_slowdown(const struct wire_state *states, size_t cnt, struct str *out)
{
	struct jobstate_pace pace;

	jobstate_pace(states, cnt, &pace);
	if (pace.slow_since_step != 0 && pace.baseline_ns > 0)
		str_printf(out, " slow_since=%" PRIu64 " baseline_ms=%.1f factor=%.2f",
			   pace.slow_since_step, (double)pace.baseline_ns / NSEC_PER_MSEC,
			   (double)pace.now_ns / (double)pace.baseline_ns);
}

uint64_t jobstate_step(const struct wire_state *states, size_t cnt)
{
	uint64_t step = 0;

	for (size_t i = 0; i < cnt; i++)
		step = MAX(step, wire_is_watched(&states[i]) ? states[i].step : 0);
	return step;
}

void jobstate_append(const struct wire_state *states, size_t cnt, bool profiling, struct str *out)
{
	str_printf(out, "state=%s workers=%zu step=%" PRIu64, jobstate_word(states, cnt, profiling),
		   jobstate_living(states, cnt), jobstate_step(states, cnt));
	append_times(states, cnt, out);
	append_slowdown(states, cnt, out);
}

void jobstate_fill_report(const struct wire_state *states, size_t cnt, struct report *report)
{
	int64_t iteration_ns = 0;
	uint64_t iterations = 0;

	report->world_size = (int)cnt;
	for (size_t i = 0; i < cnt; i++) {
		report->world_size = MAX(report->world_size, states[i].world_size);
		iteration_ns = MAX(iteration_ns, states[i].iteration_ns);
		iterations = MAX(iterations, states[i].iterations);
	}
	report->workers_expected = report->world_size;
	report->iterations = (double)iterations;
	report->iteration_ms = (double)iteration_ns / NSEC_PER_MSEC;
}

static bool has_loop(const struct wire_state *state, bool living)
{
	return state->sequence[0] != '\0' && wire_is_watched(state) == living;
}

static bool same_loop(const struct wire_state *a, const struct wire_state *b)
{
	return strncmp(a->sequence, b->sequence, sizeof(a->sequence)) == 0;
}

/* Boyer and Moore's vote: the iteration of more than half, else one of those that were learned. */
static const struct wire_state *vote_loop(const struct wire_state *states, size_t cnt, bool living)
{
	const struct wire_state *chosen = NULL;
	size_t votes = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!has_loop(&states[i], living))
			continue;
		if (votes == 0)
			chosen = &states[i];
		votes += votes == 0 || same_loop(chosen, &states[i]) ? 1 : SIZE_MAX;
	}
	return chosen;
}

void jobstate_loop(const struct wire_state *states, size_t cnt, struct report_loop *ret)
{
	bool living = jobstate_living(states, cnt) > 0;
	const struct wire_state *chosen = vote_loop(states, cnt, living);

	*ret = (struct report_loop){ 0 };
	if (chosen == NULL)
		return;
	memcpy(ret->marks, chosen->sequence,
	       strnlen(chosen->sequence, MIN(sizeof(ret->marks), sizeof(chosen->sequence)) - 1));
	for (size_t i = cnt; i > 0; i--) {
		if (!has_loop(&states[i - 1], living))
			continue;
		ret->known_cnt++;
		if (!same_loop(chosen, &states[i - 1]))
			continue;
		ret->worker_cnt++;
		ret->since_step = states[i - 1].learned_step; /* the first worker's */
	}
}

static bool is_listed(const struct report_origin *origin, const char *host)
{
	for (size_t i = 0; i < origin->host_cnt; i++) {
		if (strcmp(origin->hosts[i], host) == 0)
			return true;
	}
	return false;
}

void jobstate_hosts(const struct wire_state *states, size_t cnt, struct report *report)
{
	const char **list = arena_calloc(&report->arena, cnt + 1, sizeof(*list));

	if (list == NULL)
		return;
	report->origin.hosts = list;
	report->origin.host_cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		size_t len = strnlen(states[i].host, sizeof(states[i].host));
		char *host = arena_calloc(&report->arena, len + 1, 1);

		if (host == NULL)
			return;
		memcpy(host, states[i].host, len);
		if (len > 0 && !is_listed(&report->origin, host))
			list[report->origin.host_cnt++] = host;
	}
}

/* Workers of the same rank came one after the other: the last one counts. */
static bool is_last_of_rank(const struct wire_state *states, size_t cnt, size_t i)
{
	for (size_t j = i + 1; j < cnt; j++) {
		if (states[j].rank == states[i].rank)
			return false;
	}
	return true;
}

static void append_numbered(const struct wire_state *states, size_t cnt, struct str *out)
{
	size_t listed = 0;

	for (size_t i = 0; i < cnt && listed <= NUMBERED_MAX; i++) {
		if (states[i].numbered == 0 || !is_last_of_rank(states, cnt, i))
			continue;
		if (listed == NUMBERED_MAX)
			str_append(out, ", ...");
		else
			str_printf(out, "%srank %d is pid %u", listed > 0 ? ", " : "",
				   states[i].rank, states[i].pid);
		listed++;
	}
}

static void add_note(struct report *report, const char *note)
{
	const char **notes =
		arena_calloc(&report->arena, report->note_cnt + 1, sizeof(*report->notes));

	if (notes == NULL || note == NULL)
		return;
	if (report->note_cnt > 0)
		memcpy(notes, report->notes, report->note_cnt * sizeof(*notes));
	notes[report->note_cnt++] = note;
	report->notes = notes;
}

void jobstate_note_ranks(const struct wire_state *states, size_t cnt, struct report *report)
{
	static const char source[] = "the order in which the workers started";
	struct str note = { 0 };
	size_t numbered = 0;

	for (size_t i = 0; i < cnt; i++)
		numbered += states[i].numbered != 0 && is_last_of_rank(states, cnt, i);
	if (numbered < 2 || report->rank_source == source)
		return;
	report->rank_source = source;
	str_append(&note, "the job's environment has no ranks: ");
	append_numbered(states, cnt, &note);
	if (str_error(&note) == 0)
		add_note(report, arena_strdup(&report->arena, str_borrow(&note)));
	str_done(&note);
}

static int compare_ranks(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

int jobstate_count_ranks(const struct wire_state *states, size_t cnt, size_t *ret)
{
	int *ranks = calloc(cnt + 1, sizeof(*ranks));
	size_t distinct = 0;

	if (ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		ranks[i] = states[i].rank;
	qsort(ranks, cnt, sizeof(*ranks), compare_ranks);
	for (size_t i = 0; i < cnt; i++) /* unknown ones, -1, count each */
		distinct += ranks[i] < 0 || i == 0 || ranks[i] != ranks[i - 1];
	free(ranks);
	*ret = distinct;
	return 0;
}
