/* SPDX-License-Identifier: Apache-2.0 */
#include "live/cluster/convert.h"

#include "model/report.h"

#include <math.h>
#include <stdio.h>

/* protobuf-c has no const; it does not write to what it packs. */
static char *text_out(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void text_in(const char *text, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s", text);
}

/* A time of CLOCK_MONOTONIC; 0: none. */
static int64_t time_in(int64_t time_ns, const struct convert_from *from)
{
	int64_t ret = 0;

	if (time_ns == 0 || __builtin_add_overflow(time_ns, from->offset_ns, &ret))
		return 0;
	return ret;
}

static bool worker_in(uint32_t worker, const struct convert_from *from, uint32_t *ret)
{
	*ret = from->worker_base + worker;
	return worker < WIRE_OWN_WORKERS;
}

void convert_state_out(const struct wire_state *state, Cluster__State *ret)
{
	cluster__state__init(ret);
	ret->worker = state->worker;
	ret->pid = state->pid;
	ret->tid = state->tid;
	ret->rank = state->rank;
	ret->world_size = state->world_size;
	ret->phase = state->phase;
	ret->stride = state->stride;
	ret->cycle = state->cycle;
	ret->last_mark = state->last_mark;
	ret->step = state->step;
	ret->iterations = state->iterations;
	ret->iteration_ns = state->iteration_ns;
	ret->baseline_ns = state->baseline_ns;
	ret->best_ns = state->best_ns;
	ret->slow_since_step = state->slow_since_step;
	ret->step_ns = state->step_ns;
	ret->last_ns = state->last_ns;
	ret->lost = state->lost;
	ret->process = (unsigned char)state->process;
	ret->bye = state->bye != 0;
	ret->silent = state->silent != 0;
	ret->exit_known = state->exit_known != 0;
	ret->exit_status = state->exit_status;
	ret->learned_cnt = state->learned_cnt;
	ret->learned_step = state->learned_step;
	ret->sequence = text_out(state->sequence);
	ret->raised = text_out(state->raised);
}

static bool state_is_valid(const Cluster__State *state)
{
	return state->phase <= PHASE_SILENT && state->rank >= -1 && state->iteration_ns >= 0 &&
	       state->baseline_ns >= 0 && state->best_ns >= 0 && state->step_ns >= 0 &&
	       state->process < 128;
}

bool convert_state_in(const Cluster__State *state, const struct convert_from *from,
		      struct wire_state *ret)
{
	*ret = (struct wire_state){
		.pid = state->pid,
		.tid = state->tid,
		.rank = state->rank,
		.world_size = state->world_size,
		.phase = state->phase,
		.stride = state->stride,
		.cycle = state->cycle,
		.last_mark = state->last_mark,
		.step = state->step,
		.iterations = state->iterations,
		.iteration_ns = state->iteration_ns,
		.baseline_ns = state->baseline_ns,
		.best_ns = state->best_ns,
		.slow_since_step = state->slow_since_step,
		.step_ns = state->step_ns,
		.last_ns = time_in(state->last_ns, from),
		.lost = state->lost,
		.process = (char)state->process,
		.bye = (char)state->bye,
		.silent = (char)state->silent,
		.exit_known = (char)state->exit_known,
		.exit_status = state->exit_status,
		.learned_cnt = state->learned_cnt,
		.learned_step = state->learned_step,
	};
	text_in(state->sequence, ret->sequence, sizeof(ret->sequence));
	text_in(state->raised, ret->raised, sizeof(ret->raised));
	text_in(from->host, ret->host, sizeof(ret->host));
	return worker_in(state->worker, from, &ret->worker) && state_is_valid(state);
}

void convert_window_out(const struct wire_window *window, Cluster__Window *ret)
{
	cluster__window__init(ret);
	ret->kind = text_out(window->kind);
	ret->baseline_ms = window->baseline_ms;
	ret->now_ms = window->now_ms;
	ret->since_step = window->since_step;
	ret->step = window->step;
	ret->workers = window->workers;
}

/* NULL: of a daemon that does not say. */
void convert_window_in(const Cluster__Window *window, struct wire_window *ret)
{
	*ret = (struct wire_window){ .workers = 0 };
	if (window == NULL)
		return;
	text_in(window->kind, ret->kind, sizeof(ret->kind));
	ret->baseline_ms = isfinite(window->baseline_ms) ? window->baseline_ms : 0;
	ret->now_ms = isfinite(window->now_ms) ? window->now_ms : 0;
	ret->since_step = window->since_step;
	ret->step = window->step;
	ret->workers = window->workers;
}

void convert_answer_out(const struct wire_answer *answer, Cluster__Answer *ret)
{
	cluster__answer__init(ret);
	ret->worker = answer->worker;
	ret->outcome = answer->outcome;
	ret->order = answer->order_id;
	ret->step = answer->step;
	ret->window_ns = answer->window_ns;
	ret->stall_ns = answer->stall_ns;
	ret->text = text_out(answer->text);
}

bool convert_answer_in(const Cluster__Answer *answer, const struct convert_from *from,
		       struct wire_answer *ret)
{
	*ret = (struct wire_answer){ .outcome = answer->outcome,
				     .order_id = answer->order,
				     .step = answer->step,
				     .window_ns = answer->window_ns,
				     .stall_ns = answer->stall_ns };
	text_in(answer->text, ret->text, sizeof(ret->text));
	return worker_in(answer->worker, from, &ret->worker) &&
	       answer->outcome <= OUTCOME_SUMMARIZED;
}

void convert_where_out(const struct wire_where *where, struct convert_entered *room,
		       Cluster__Where *ret)
{
	cluster__where__init(ret);
	ret->worker = where->worker;
	ret->step = where->step;
	ret->stack = text_out(where->stack);
	ret->leaf = text_out(where->leaf);
	ret->awaited = text_out(where->awaited);
	ret->awaited_by = where->awaited_by;
	ret->ended = text_out(where->ended);
	ret->ended_ago_ns = where->ended_ago_ns;
	ret->read = where->read != 0;
	ret->shown = where->shown;
	ret->in_collective = where->in_collective != 0;
	ret->says = text_out(where->says);
	ret->child = text_out(where->child);
	for (uint32_t i = 0; i < where->entered_cnt; i++) {
		const struct wire_entered *from = &where->entered[i];
		Cluster__Entered *to = &room->entered[i];

		cluster__entered__init(to);
		to->time_ns = from->time_ns;
		to->number = from->number;
		to->size = from->size;
		to->by_name = from->by_name != 0;
		to->group = text_out(from->group);
		to->name = text_out(from->name);
		room->pointers[i] = to;
	}
	ret->entered = room->pointers;
	ret->n_entered = where->entered_cnt;
}

bool convert_where_in(const Cluster__Where *where, const struct convert_from *from,
		      struct wire_where *ret)
{
	*ret = (struct wire_where){ .entered_cnt = (uint32_t)MIN(where->n_entered, WIRE_GROUPS),
				    .step = where->step,
				    .awaited_by = where->awaited_by,
				    .ended_ago_ns = where->ended_ago_ns,
				    .read = where->read,
				    .shown = where->shown,
				    .in_collective = where->in_collective };
	text_in(where->says, ret->says, sizeof(ret->says));
	text_in(where->child, ret->child, sizeof(ret->child));
	text_in(where->stack, ret->stack, sizeof(ret->stack));
	text_in(where->leaf, ret->leaf, sizeof(ret->leaf));
	text_in(where->awaited, ret->awaited, sizeof(ret->awaited));
	text_in(where->ended, ret->ended, sizeof(ret->ended));
	for (uint32_t i = 0; i < ret->entered_cnt; i++) {
		const Cluster__Entered *entered = where->entered[i];

		ret->entered[i] = (struct wire_entered){ .time_ns = time_in(entered->time_ns, from),
							 .number = entered->number,
							 .size = entered->size,
							 .by_name = entered->by_name };
		text_in(entered->group, ret->entered[i].group, sizeof(ret->entered[i].group));
		text_in(entered->name, ret->entered[i].name, sizeof(ret->entered[i].name));
	}
	return worker_in(where->worker, from, &ret->worker) && wire_where_valid(ret);
}

void convert_slices_cost_out(struct wire_slices_cost *cost, Cluster__SlicesCost *ret)
{
	cluster__slices_cost__init(ret);
	ret->worker = cost->worker;
	ret->id = cost->id;
	ret->switching_ns = cost->switching_ns;
	ret->pairs = cost->pairs;
	ret->n_pairs = MIN(cost->pair_cnt, WIRE_PAIRS_MAX);
}

bool convert_slices_cost_in(const Cluster__SlicesCost *cost, const struct convert_from *from,
			    struct wire_slices_cost *ret)
{
	*ret = (struct wire_slices_cost){ .pair_cnt = (uint32_t)MIN(cost->n_pairs, WIRE_PAIRS_MAX),
					  .id = cost->id,
					  .switching_ns = cost->switching_ns };
	/* NAN is a pair that is not complete. */
	for (uint32_t i = 0; i < ret->pair_cnt; i++) {
		if (isinf(cost->pairs[i]))
			return false;
		ret->pairs[i] = cost->pairs[i];
	}
	return worker_in(cost->worker, from, &ret->worker) && isfinite(cost->switching_ns);
}

void convert_ask_out(const struct wire_ask *ask, Cluster__Ask *ret)
{
	cluster__ask__init(ret);
	ret->client = ask->client;
	ret->window_ns = ask->window_ns;
	ret->kind = ask->kind;
	ret->pid = ask->pid;
}

void convert_ask_in(const Cluster__Ask *ask, struct wire_ask *ret)
{
	*ret = (struct wire_ask){ .client = ask->client,
				  .window_ns = ask->window_ns,
				  .kind = ask->kind,
				  .pid = ask->pid };
}

void convert_order_out(const struct wire_order *order, Cluster__Window *room, Cluster__Order *ret)
{
	cluster__order__init(ret);
	ret->id = order->id;
	ret->start_step = order->start_step;
	ret->window_ns = order->window_ns;
	ret->steps = order->steps;
	ret->stride = order->stride;
	convert_window_out(&order->window, room);
	ret->window = room;
}

void convert_order_in(const Cluster__Order *order, struct wire_order *ret)
{
	*ret = (struct wire_order){ .id = order->id,
				    .start_step = order->start_step,
				    .window_ns = order->window_ns,
				    .steps = order->steps,
				    .stride = order->stride };
	convert_window_in(order->window, &ret->window);
}

void convert_slices_out(const struct wire_slices *slices, Cluster__Slices *ret)
{
	cluster__slices__init(ret);
	ret->id = slices->id;
	ret->start_step = slices->start_step;
	ret->slice_steps = slices->slice_steps;
	ret->slice_cnt = slices->slice_cnt;
	ret->kind = slices->kind;
	ret->stride = slices->stride;
}

void convert_slices_in(const Cluster__Slices *slices, struct wire_slices *ret)
{
	*ret = (struct wire_slices){ .id = slices->id,
				     .start_step = slices->start_step,
				     .slice_steps = slices->slice_steps,
				     .slice_cnt = slices->slice_cnt,
				     .kind = slices->kind,
				     .stride = slices->stride };
}

void convert_report_out(struct wire_report *report, struct convert_findings *room,
			Cluster__Report *ret)
{
	cluster__report__init(ret);
	ret->number = report->number;
	ret->verdict = report->verdict;
	ret->reason = report->reason;
	ret->finding_cnt = report->finding_cnt;
	ret->n_findings = MIN(report->finding_cnt, WIRE_REPORT_FINDINGS);
	for (size_t i = 0; i < ret->n_findings; i++) {
		struct wire_finding *from = &report->findings[i];
		Cluster__Finding *to = &room->findings[i];

		cluster__finding__init(to);
		to->cause = from->cause;
		to->gain_ns = from->gain_ns;
		to->rank_cnt = from->rank_cnt;
		to->ranks = from->ranks;
		to->n_ranks = MIN(from->rank_cnt, WIRE_FINDING_RANKS);
		room->pointers[i] = to;
	}
	ret->findings = room->pointers;
}

bool convert_report_in(const Cluster__Report *report, struct wire_report *ret)
{
	size_t listed = MIN(report->n_findings, WIRE_REPORT_FINDINGS);

	*ret = (struct wire_report){ .number = report->number,
				     .verdict = report->verdict,
				     .finding_cnt = report->finding_cnt };
	text_in(report->reason, ret->reason, sizeof(ret->reason));
	for (size_t i = 0; i < listed; i++) {
		const Cluster__Finding *from = report->findings[i];
		struct wire_finding *to = &ret->findings[i];

		to->gain_ns = from->gain_ns;
		to->rank_cnt = from->rank_cnt;
		text_in(from->cause, to->cause, sizeof(to->cause));
		for (size_t k = 0; k < MIN(from->n_ranks, WIRE_FINDING_RANKS); k++)
			to->ranks[k] = from->ranks[k];
		if (from->n_ranks < MIN(from->rank_cnt, WIRE_FINDING_RANKS))
			return false;
	}
	return report->verdict < VERDICT_CNT &&
	       listed == MIN(report->finding_cnt, WIRE_REPORT_FINDINGS);
}
