/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/hublive.h"

#include "base/clock.h"
#include "live/hub/hub_parts.h"
#include "live/hub/jobstate.h"
#include "live/hub/keeping.h"
#include "report/costphrase.h"
#include "report/jsonwriter.h"

#include <errno.h>
#include <stdio.h>

#define SHOW_NS NSEC_PER_SEC

static void put_count(struct json_writer *w, json_t *to, const char *key, uint64_t value)
{
	jsonwriter_put(w, to, key, json_integer((json_int_t)value));
}

/* 0: unknown. */
static void put_ms(struct json_writer *w, json_t *to, const char *key, int64_t ns)
{
	jsonwriter_put(w, to, key,
		       ns > 0 ? jsonwriter_number((double)ns / NSEC_PER_MSEC) : json_null());
}

/* --- ranks --- */

static const char *phase_word(uint32_t phase)
{
	static const char *const words[] = {
		[PHASE_LEARNING] = "learning",	 [PHASE_STEADY] = "watching",
		[PHASE_SLOW] = "slow",		 [PHASE_BLOCKED] = "blocked",
		[PHASE_PROFILING] = "profiling", [PHASE_GONE] = "ended",
		[PHASE_SILENT] = "not watched",
	};

	return phase < ARRAY_SIZE(words) ? words[phase] : "unknown";
}

static json_t *rank_object(struct json_writer *w, const struct wire_state *state)
{
	json_t *ret = json_object();

	jsonwriter_put(w, ret, "rank", state->rank >= 0 ? json_integer(state->rank) : json_null());
	jsonwriter_put_text(w, ret, "host", state->host);
	jsonwriter_put_text(w, ret, "state", phase_word(state->phase));
	put_count(w, ret, "step", state->step);
	put_ms(w, ret, "iteration_ms", state->iteration_ns);
	put_ms(w, ret, "baseline_ms", state->baseline_ns);
	return ret;
}

static int by_rank(const void *a, const void *b)
{
	const struct wire_state *x = *(const struct wire_state *const *)a;
	const struct wire_state *y = *(const struct wire_state *const *)b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All of a small job; else the first that connected. */
static void put_ranks(struct json_writer *w, json_t *root, const struct hub *hub)
{
	const struct wire_state *shown[HUBLIVE_RANKS_MAX];
	size_t cnt = MIN(hub->workers.cnt, (size_t)HUBLIVE_RANKS_MAX);
	json_t *list = json_array();

	for (size_t i = 0; i < cnt; i++)
		shown[i] = &hub->workers.data[i];
	qsort(shown, cnt, sizeof(shown[0]), by_rank);
	for (size_t i = 0; i < cnt; i++)
		jsonwriter_push(w, list, rank_object(w, shown[i]));
	jsonwriter_put(w, root, "ranks", list);
	put_count(w, root, "ranks_left_out", hub->workers.cnt - cnt);
}

static json_t *row_object(struct json_writer *w, const struct carpet *carpet, size_t row)
{
	char cells[CARPET_COLUMNS_MAX + 1], ranks[32];
	json_t *ret = json_object();
	int32_t first, last;

	carpet_ranks(carpet, row, &first, &last);
	(void)snprintf(ranks, sizeof(ranks), last > first ? "%d-%d" : "%d", first, last);
	for (size_t i = 0; i < carpet->column_cnt; i++)
		cells[i] = carpet_letter((enum carpet_cell)carpet->rows[row].cells[i]);
	cells[carpet->column_cnt] = '\0';
	jsonwriter_put_text(w, ret, "ranks", ranks);
	jsonwriter_put_text(w, ret, "cells", cells);
	return ret;
}

static void put_carpet(struct json_writer *w, json_t *root, const struct hub *hub)
{
	const struct carpet *carpet = &hub->carpet;
	json_t *object, *rows;

	if (carpet->column_cnt == 0) {
		jsonwriter_put(w, root, "carpet", json_null());
		return;
	}
	object = json_object();
	rows = json_array();
	put_count(w, object, "begin_ms", (uint64_t)(carpet->begin_ns / NSEC_PER_MSEC));
	put_count(w, object, "column_ms", (uint64_t)(carpet->column_ns / NSEC_PER_MSEC));
	for (size_t i = 0; i < carpet->row_cnt; i++)
		jsonwriter_push(w, rows, row_object(w, carpet, i));
	jsonwriter_put(w, object, "rows", rows);
	jsonwriter_put(w, root, "carpet", object);
}

/* Ranks of which nothing was heard are missing, not well. */
static void put_coverage(struct json_writer *w, json_t *root, const struct hub *hub)
{
	json_t *object = json_object();
	size_t watched = 0, off = 0, ended = 0;
	int32_t world = 0;

	vec_foreach(state, &hub->workers) {
		watched += wire_is_watched(state);
		off += state->phase == PHASE_SILENT;
		ended += state->phase == PHASE_GONE;
		world = MAX(world, state->world_size);
	}
	put_count(w, object, "world_size", (uint64_t)MAX(world, 0));
	put_count(w, object, "watched", watched);
	put_count(w, object, "not_watched", off);
	put_count(w, object, "ended", ended);
	put_count(w, object, "never_seen",
		  (size_t)world > hub->workers.cnt ? (size_t)world - hub->workers.cnt : 0);
	jsonwriter_put(w, root, "coverage", object);
}

/* --- the order --- */

static json_t *order_object(struct json_writer *w, const struct profile *profile)
{
	json_t *ret = json_object();
	size_t open = 0, in = 0, missed = 0, begun = 0;

	vec_foreach(answer, &profile->answers) {
		open += answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN;
		begun += answer->state == ANSWER_BEGUN;
		in += answer->state == ANSWER_READY;
		missed += answer->state == ANSWER_MISSED;
	}
	put_count(w, ret, "order", profile->id);
	jsonwriter_put_text(w, ret, "why", profile->trigger.kind);
	jsonwriter_put_text(w, ret, "state",
			    !profile->begun ? "waiting for the step"
			    : open > 0	    ? "recording"
					    : "gathering");
	put_count(w, ret, "first_step", (uint64_t)profile->trigger.step);
	put_ms(w, ret, "length_ms", profile->length_ns);
	put_count(w, ret, "ranks", profile->answers.cnt);
	put_count(w, ret, "recording", begun);
	put_count(w, ret, "in", in);
	put_count(w, ret, "missed", missed);
	return ret;
}

/* --- the whole --- */

static void put_cost(struct json_writer *w, json_t *root, const struct hub *hub)
{
	struct report_overhead overhead;
	struct str text = { 0 };

	hub_fill_overhead(hub, &overhead);
	phrase_overhead(&text, &overhead);
	jsonwriter_put_text(w, root, "cost", text.len > 0 ? str_borrow(&text) : NULL);
	str_done(&text);
}

int hublive_print(const struct hub *hub, struct str *out)
{
	const struct wire_state *states = hub->workers.data;
	struct jobstate_pace pace;
	struct json_writer w = { 0 };
	json_t *root = json_object();

	jobstate_pace(states, hub->workers.cnt, &pace);
	jsonwriter_put_text(&w, root, "schema", "perftracker.live.v1");
	jsonwriter_put_text(
		&w, root, "job",
		keeper_borrow_key(hub->show.page != NULL ? hub->show.page : hub->keeper));
	put_count(&w, root, "at_ms", (uint64_t)(clock_wall_ns() / NSEC_PER_MSEC));
	jsonwriter_put_text(&w, root, "state",
			    jobstate_word(states, hub->workers.cnt, hub->profile.active));
	put_count(&w, root, "step", jobstate_step(states, hub->workers.cnt));
	put_ms(&w, root, "iteration_ms", pace.now_ns);
	put_ms(&w, root, "baseline_ms", pace.baseline_ns);
	put_ms(&w, root, "best_ms", pace.best_ns);
	jsonwriter_put(&w, root, "slow_since_step",
		       pace.slow_since_step > 0 ? json_integer((json_int_t)pace.slow_since_step)
						: json_null());
	put_coverage(&w, root, hub);
	put_ranks(&w, root, hub);
	put_carpet(&w, root, hub);
	jsonwriter_put(&w, root, "order",
		       hub->profile.active ? order_object(&w, &hub->profile) : json_null());
	jsonwriter_put(&w, root, "asked", json_boolean(hub->asked_until_ns > 0));
	put_cost(&w, root, hub);
	return jsonwriter_print(&w, root, out);
}

void hublive_say(struct hub *hub, int64_t now_ns)
{
	struct str text = { 0 };

	if (hub->show.say == NULL || now_ns < hub->show_ns)
		return;
	hub->show_ns = now_ns + SHOW_NS;
	if (hub->show.page != NULL)
		hub_show_state(hub);
	carpet_note(&hub->carpet, hub->workers.data, hub->workers.cnt, now_ns, clock_wall_ns());
	if (hublive_print(hub, &text) == 0)
		hub->show.say(hub->show.arg, &text);
	str_done(&text);
}
