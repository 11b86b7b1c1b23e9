/* SPDX-License-Identifier: Apache-2.0 */
/* One profile of the job: its order, the workers' answers, its report. */
#include "base/clock.h"
#include "base/log.h"
#include "format/shared/block.h"
#include "format/shared/message.h"
#include "live/hub/analysis.h"
#include "live/hub/hub_parts.h"
#include "live/hub/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Waiting for answers: so long after the window should have ended, and again after each answer. */
#define BEGIN_GRACE_NS (60 * NSEC_PER_SEC)
#define ANSWER_GRACE_NS (120 * NSEC_PER_SEC)

static struct answer *find_answer(struct hub *hub, uint32_t worker)
{
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->worker == worker)
			return answer;
	}
	return NULL;
}

static void set_missed(struct answer *answer, const char *why)
{
	answer->state = ANSWER_MISSED;
	(void)snprintf(answer->text, sizeof(answer->text), "%.*s", WIRE_TEXT - 1, why);
}

void hub_lose_worker(struct hub *hub, uint32_t worker, const char *why)
{
	struct answer *answer = find_answer(hub, worker);

	if (hub->profile.active && answer != NULL &&
	    (answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN))
		set_missed(answer, why);
}

static int fill_answers(struct hub *hub)
{
	hub->profile.answers.cnt = 0;
	vec_foreach(state, &hub->workers) {
		struct answer answer = { .worker = state->worker, .rank = state->rank };

		if (wire_is_watched(state) && vec_push(&hub->profile.answers, answer) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void fill_trigger(const struct hub *hub, const char *kind, const struct order_plan *plan,
			 struct report_trigger *ret)
{
	int64_t baseline_ns = 0, current_ns = 0;

	vec_foreach(state, &hub->workers) {
		if (!wire_is_watched(state))
			continue;
		baseline_ns = MAX(baseline_ns, state->baseline_ns);
		current_ns = MAX(current_ns, state->iteration_ns);
	}
	*ret = (struct report_trigger){
		.present = true,
		.kind = kind,
		.baseline_iteration_ms = (double)baseline_ns / NSEC_PER_MSEC,
		.current_iteration_ms = (double)current_ns / NSEC_PER_MSEC,
		.step = (int64_t)plan->start_step,
	};
}

static int64_t expected_ns(const struct hub *hub, const struct order_plan *plan)
{
	int64_t slowest_ns = 0;

	vec_foreach(state, &hub->workers) {
		if (wire_is_watched(state))
			slowest_ns = MAX(slowest_ns, state->step_ns);
	}
	/* Profiled iterations may take several times as long. */
	return PLAN_MARGIN_NS + 4 * slowest_ns * plan->stride * (int64_t)(plan->steps + 2);
}

int hub_start_profile(struct hub *hub, const char *kind, int64_t window_ns, int64_t now_ns)
{
	struct plan_limits limits = { .window_ns = window_ns,
				      .steps_max = hub->options->steps_max };
	struct order_plan plan = { 0 };
	struct wire_order order;
	int ret = plan_order(hub->workers.data, hub->workers.cnt, &limits, &plan);

	if (ret == 0)
		ret = fill_answers(hub);
	if (ret < 0)
		return ret;
	plan.id = ++hub->number;
	order = (struct wire_order){ .id = plan.id,
				     .start_step = plan.start_step,
				     .window_ns = plan.window_ns,
				     .steps = plan.steps,
				     .stride = plan.stride };
	ret = bus_pub(hub->bus, SUBJECT_ORDER, &order, sizeof(order));
	if (ret < 0)
		return ret;
	hub->profile.active = true;
	hub->profile.begun = hub->profile.torch = false;
	hub->profile.id = plan.id;
	hub->profile.deadline_ns = now_ns + BEGIN_GRACE_NS + expected_ns(hub, &plan);
	fill_trigger(hub, kind, &plan, &hub->profile.trigger);
	if (!hub->options->quiet)
		log_line(LOG_INFO,
			 "event=profile why=%s workers=%zu first_step=%" PRIu64
			 " iterations=%" PRIu64 " baseline_ms=%.1f now_ms=%.1f",
			 kind, hub->profile.answers.cnt, plan.start_step, plan.steps,
			 hub->profile.trigger.baseline_iteration_ms,
			 hub->profile.trigger.current_iteration_ms);
	return 0;
}

void hub_take_answer(void *arg, const struct bus_message *message)
{
	static const enum answer_state states[] = {
		[OUTCOME_BEGUN] = ANSWER_BEGUN,
		[OUTCOME_MISSED] = ANSWER_MISSED,
		[OUTCOME_EXPORTED] = ANSWER_EXPORTED,
		[OUTCOME_SUMMARIZED] = ANSWER_READY,
	};
	struct hub *hub = arg;
	const struct wire_answer *wire = message->data;
	struct answer *answer;

	if (message->len != sizeof(*wire) || wire->outcome >= ARRAY_SIZE(states))
		return;
	answer = find_answer(hub, wire->worker);
	if (!hub->profile.active || wire->order_id != hub->profile.id || answer == NULL ||
	    answer->state == ANSWER_READY || answer->state == ANSWER_MISSED)
		return; /* late, or of another order */
	answer->state = states[wire->outcome];
	hub->profile.begun |= wire->outcome != OUTCOME_MISSED;
	if (wire->outcome == OUTCOME_BEGUN && strcmp(wire->text, SOURCE_TORCH) == 0)
		hub->profile.torch = true;
	answer->stall_ns = MAX(answer->stall_ns, wire->stall_ns);
	(void)snprintf(answer->text, sizeof(answer->text), "%.*s", WIRE_TEXT - 1, wire->text);
	hub->profile.deadline_ns = MAX(hub->profile.deadline_ns, clock_mono_ns() + ANSWER_GRACE_NS);
}

static int gather(struct hub *hub, const char **paths, struct analysis_absence *absences,
		  struct analysis_input *ret)
{
	*ret = (struct analysis_input){ .paths = paths,
					.absences = absences,
					.trigger = hub->profile.trigger };
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->state == ANSWER_READY) {
			paths[ret->path_cnt++] = answer->text;
			continue;
		}
		if (answer->state != ANSWER_MISSED)
			set_missed(answer, answer->state == ANSWER_NONE
						   ? "it did not reach the step in time"
						   : "its trace did not come in time");
		absences[ret->absence_cnt++] =
			(struct analysis_absence){ answer->rank, answer->text };
	}
	return ret->path_cnt > 0 ? 0 : -ENODATA;
}

static void no_report(struct hub *hub, const struct analysis_input *input, int error,
		      const char *why)
{
	log_line(LOG_WARNING, "event=profile-failed why=\"%s\"", why);
	for (size_t i = 0; i < input->absence_cnt; i++)
		log_line(LOG_WARNING, "event=worker-missed rank=%d why=\"%s\"",
			 input->absences[i].rank, input->absences[i].why);
	hub_reply(hub, -error, why);
}

void hub_finish_profile(struct hub *hub)
{
	size_t cnt = hub->profile.answers.cnt;
	_cleanup_free_ const char **paths = calloc(cnt + 1, sizeof(*paths));
	_cleanup_free_ struct analysis_absence *absences = calloc(cnt + 1, sizeof(*absences));
	bool requested = strcmp(hub->profile.trigger.kind, "request") == 0;
	struct analysis_input input = { 0 };
	struct err err = { "no worker delivered a trace" };
	struct report report;
	int ret;

	hub->profile.active = false;
	if (paths == NULL || absences == NULL)
		ret = err_set(&err, ENOMEM, "out of memory");
	else
		ret = gather(hub, paths, absences, &input);
	if (ret == 0)
		ret = analysis_run(&input, hub->options, &report, &err);
	if (ret < 0) {
		no_report(hub, &input, ret, err.text);
		return;
	}
	if (!requested && report.verdict != VERDICT_ABNORMAL)
		hub->quiet_slowdowns++;
	hub_publish_report(hub, &report, hub->profile.id, requested);
}

/* Publishes an order without steps: a late worker must not begin to profile. */
static void cancel_order(struct hub *hub)
{
	struct wire_order order = { .id = hub->profile.id };

	(void)bus_pub(hub->bus, SUBJECT_ORDER, &order, sizeof(order));
}

void hub_watch_profile(struct hub *hub, int64_t now_ns)
{
	bool late = now_ns >= hub->profile.deadline_ns, complete = true;

	vec_foreach(answer, &hub->profile.answers)
		complete &= answer->state == ANSWER_READY || answer->state == ANSWER_MISSED;
	if (late && !complete)
		cancel_order(hub);
	if (late || complete)
		hub_finish_profile(hub);
}
