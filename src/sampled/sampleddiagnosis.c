/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampleddiagnosis.h"

#include "base/str.h"
#include "sampled/sampled_parts.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

int sampledcase_note(struct sampledcase *c, const char *fmt, ...)
{
	char text[400];
	va_list args;

	if (c->report->note_cnt == SAMPLEDCASE_NOTES_MAX)
		return 0;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	c->notes[c->report->note_cnt] = arena_strdup(c->arena, text);
	return c->notes[c->report->note_cnt++] != NULL ? 0 : -ENOMEM;
}

const char *sampledcase_ranks(const struct sampledcase *c, const bool *which)
{
	enum { SHOWN = 8 };
	struct str text = { 0 };
	size_t cnt = 0, shown = 0;
	const char *ret = NULL;

	for (size_t i = 0; i < c->job->cnt; i++)
		cnt += which[i];
	str_append(&text, cnt == 1 ? "rank " : "ranks ");
	for (size_t i = 0; i < c->job->cnt && shown < SHOWN; i++)
		if (which[i])
			str_printf(&text, "%s%d", shown++ > 0 ? ", " : "", c->job->ranks[i].rank);
	if (cnt > SHOWN)
		str_printf(&text, " and %zu more", cnt - SHOWN);
	if (str_error(&text) == 0)
		ret = arena_strdup(c->arena, str_borrow(&text));
	str_done(&text);
	return ret;
}

/* --- notes on every job --- */

static int note_cost(struct sampledcase *c)
{
	int64_t most_ns = 0, setup_ns = 0;
	size_t late = 0, all = 0;

	for (size_t i = 0; i < c->job->cnt; i++) {
		const struct sampled_rank *rank = &c->job->ranks[i];

		most_ns = MAX(most_ns, rank->reader_ns);
		setup_ns = MAX(setup_ns, rank->setup_ns);
		late += rank->late_cnt;
		all += rank->late_cnt + rank->moment_cnt;
	}
	if (late * 10 > all &&
	    sampledcase_note(c,
			     "%zu of %zu samples came too late and were left out: this host has "
			     "more to do than CPUs",
			     late, all) < 0)
		return -ENOMEM;
	return sampledcase_note(
		c,
		"cost: at most %.2f %% of a core per rank in the window, %.0f ms of a CPU before "
		"and after it; no thread was stopped",
		c->window_s > 0 ? (double)most_ns / 1e7 / c->window_s : 0.0,
		(double)setup_ns / NSEC_PER_MSEC);
}

static int note_pace(struct sampledcase *c)
{
	if (c->pace.iteration_cnt > 0)
		return sampledcase_note(c, "iterations are counted by %s in the samples",
					c->pace.by);
	return sampledcase_note(
		c,
		"the length of an iteration is not known: no optimizer step, loader "
		"call or backward pass is long enough for samples %.0f ms apart",
		(double)c->job->period_ns / NSEC_PER_MSEC);
}

static int note_threads(struct sampledcase *c)
{
	for (size_t i = 0; i < c->job->cnt; i++) {
		const struct sampled_rank *rank = &c->job->ranks[i];

		if (rank->ended &&
		    sampledcase_note(c, "rank %d ended while it was sampled", rank->rank) < 0)
			return -ENOMEM;
		if (rank->error[0] != '\0' &&
		    sampledcase_note(c, "rank %d: %s", rank->rank, rank->error) < 0)
			return -ENOMEM;
		if (rank->thread_cnt > 0 && c->window_s > 0 && c->blame.ranks[i].runs_frac < 0.02 &&
		    (double)rank->threads[0].ran_ns / NSEC_PER_SEC > 0.2 * c->window_s &&
		    sampledcase_note(
			    c,
			    "rank %d: its main thread hardly runs, thread %u (%s) used %.0f "
			    "%% of a core: if that one trains, see `perftracker stacks %u`",
			    rank->rank, rank->threads[0].tid, rank->threads[0].name,
			    (double)rank->threads[0].ran_ns / 1e7 / c->window_s, rank->pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fill_absences(struct sampledcase *c)
{
	static const char WHY[] = "not seen from outside; `perftracker run` records them";
	static const struct report_absence ABSENCES[] = {
		{ "marks of single iterations", WHY },
		{ "collectives and their sizes", WHY },
		{ "operators", WHY },
		{ "GPU kernels", WHY },
	};

	c->report->absences = ABSENCES;
	c->report->absence_cnt = ARRAY_SIZE(ABSENCES);
	return 0;
}

static int find_missing(struct sampledcase *c)
{
	const int size = c->report->world_size;
	int *missing = arena_calloc(c->arena, (size_t)size + 1, sizeof(*missing));
	size_t at = 0;

	if (missing == NULL)
		return -ENOMEM;
	for (int rank = 0; rank < size; rank++) {
		while (at < c->job->cnt && c->job->ranks[at].rank < rank)
			at++;
		if (at == c->job->cnt || c->job->ranks[at].rank != rank)
			missing[c->report->missing_cnt++] = rank;
	}
	c->report->missing = missing;
	return 0;
}

static double window_of(const struct sampled_job *job)
{
	int64_t ns = 0;

	for (size_t i = 0; i < job->cnt; i++)
		if (job->ranks[i].moment_cnt > 1)
			ns = MAX(ns, job->ranks[i].moments[job->ranks[i].moment_cnt - 1].time_ns -
					     job->ranks[i].moments[0].time_ns);
	return (double)ns / NSEC_PER_SEC;
}

/* Of the first rank that has one: all ranks of a job iterate together. */
static void find_pace(struct sampledcase *c)
{
	c->pace = (struct sampledpace){ .iteration_ms = (double)NAN, .by = "" };
	for (size_t i = 0; i < c->job->cnt && c->pace.iteration_cnt == 0; i++)
		sampledpace_find(&c->view, i, &c->pace);
	c->report->iteration_ms = c->pace.iteration_ms;
	c->report->iterations =
		c->pace.iteration_cnt > 0 ? (double)c->pace.iteration_cnt : (double)NAN;
}

static int fill(struct sampledcase *c)
{
	int error = sampledview_init(&c->view, c->job, c->arena);

	if (error == 0)
		error = sampledblame_find(&c->view, &c->blame);
	if (error == 0) {
		find_pace(c);
		error = find_missing(c);
	}
	if (error == 0)
		error = fill_absences(c);
	if (error == 0)
		error = sampledfindings_fill(c);
	if (error == 0)
		error = sampledpictures_fill(c);
	if (error == 0)
		error = note_pace(c);
	if (error == 0)
		error = note_threads(c);
	return error == 0 ? note_cost(c) : error;
}

int sampleddiagnosis_make(const struct sampled_job *job, struct report *report)
{
	struct sampledcase c = {
		.job = job,
		.arena = &report->arena,
		.report = report,
		.window_s = window_of(job),
		.notes = arena_calloc(&report->arena, SAMPLEDCASE_NOTES_MAX, sizeof(*c.notes)),
	};
	int error;

	if (c.notes == NULL)
		return -ENOMEM;
	report->notes = c.notes;
	report->rank_source = "the environments of the processes";
	report->world_size = MAX(job->world_size, (int)job->cnt);
	for (size_t i = 0; i < job->cnt; i++)
		report->world_size = MAX(report->world_size, job->ranks[i].rank + 1);
	report->workers_expected = report->world_size;
	report->workers_analyzed = (int)job->cnt;
	error = fill(&c);
	sampledview_done(&c.view);
	return error;
}

/* --- whether anything moves --- */

/* *ret_peers: all of them in collectives; *ret_runs: it used the CPU meanwhile. */
static bool stands_still(const struct sampledview *view, size_t index, bool *ret_peers,
			 bool *ret_runs)
{
	const struct sampled_rank *rank = &view->job->ranks[index];
	size_t votes = 0, same = 0, running = 0;
	const struct sampledview_stack *most = NULL;

	/* The place of most samples, then how many are there. */
	for (size_t i = 0; i < rank->moment_cnt; i++) {
		const struct sampledview_stack *stack;

		running += rank->moments[i].state == 'R';
		if (rank->moments[i].stack == SAMPLED_NONE)
			continue;
		stack = &view->stacks[index][rank->moments[i].stack];
		if (votes == 0)
			most = stack;
		votes += stack->place == most->place ? 1 : (size_t)-1;
	}
	for (size_t i = 0; i < rank->moment_cnt && most != NULL; i++)
		same += rank->moments[i].stack != SAMPLED_NONE &&
			view->stacks[index][rank->moments[i].stack].place == most->place;
	*ret_peers = most != NULL && most->phase == PHASE_PEERS;
	*ret_runs = running * 20 > rank->moment_cnt;
	return rank->moment_cnt > 0 && most != NULL &&
	       (double)same >= SAMPLED_STILL_FRAC * (double)rank->moment_cnt;
}

static bool stands(const struct sampledview *view)
{
	size_t still = 0, peers = 0, blocked = 0;
	const size_t cnt = view->job->cnt;

	for (size_t i = 0; i < cnt; i++) {
		bool in_peers, runs;

		if (!stands_still(view, i, &in_peers, &runs))
			continue;
		still++;
		peers += in_peers;
		blocked += !runs;
	}
	if (still == cnt)
		return peers > 0 || blocked == cnt;
	/* Others that move may be in a loop without end. */
	return cnt > 1 && peers == still && still * 2 >= cnt;
}

int sampleddiagnosis_stands(const struct sampled_job *job)
{
	struct sampledview view;
	struct arena arena;
	int ret;

	if (window_of(job) * NSEC_PER_SEC < SAMPLED_STILL_NS)
		return 0;
	arena_init(&arena);
	ret = sampledview_init(&view, job, &arena);
	if (ret == 0)
		ret = stands(&view);
	sampledview_done(&view);
	arena_done(&arena);
	return ret;
}
