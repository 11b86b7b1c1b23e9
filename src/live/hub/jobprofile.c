/* SPDX-License-Identifier: Apache-2.0 */
/* One profile of the job: its order, the workers' answers, its report. */
#include "base/clock.h"
#include "base/log.h"
#include "format/shared/block.h"
#include "format/shared/message.h"
#include "live/hang/hang.h"
#include "live/hub/analysis.h"
#include "live/hub/hub_parts.h"
#include "live/hub/jobstate.h"
#include "live/hub/keeping.h"
#include "live/hub/plan.h"
#include "localize/localize.h"
#include "model/reported/slowdown.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Waiting for answers: so long after the window should have ended, and again after each answer. */
#define BEGIN_GRACE_NS (60 * NSEC_PER_SEC)
#define ANSWER_GRACE_NS (120 * NSEC_PER_SEC)

/* A check-up whose iterations are longer than in the window before by as much is not kept. */
#define REFERENCE_SLOWER 1.2

/* Between two windows of one slowdown, however much one costs. */
#define LEAST_GAP_MAX_NS (4 * 3600 * NSEC_PER_SEC)

static bool is_kind(const struct profile *profile, const char *kind)
{
	return strcmp(profile->trigger.kind, kind) == 0;
}

static bool is_checkup(const struct profile *profile)
{
	return is_kind(profile, "checkup");
}

/* Windows of a job at its pace: its past, later. */
static bool is_of_healthy_job(const struct profile *profile)
{
	return is_checkup(profile) || is_kind(profile, PROFILE_EARLY);
}

static struct answer *find_answer(struct hub *hub, uint32_t worker)
{
	uint32_t i = idmap_get(&hub->profile.places, worker);

	return i < hub->profile.answers.cnt && hub->profile.answers.data[i].worker == worker
		       ? &hub->profile.answers.data[i]
		       : NULL;
}

static void set_missed(struct answer *answer, const char *why)
{
	answer->state = ANSWER_MISSED;
	(void)snprintf(answer->text, sizeof(answer->text), "%.*s", WIRE_TEXT - 1, why);
}

static void set_kept(struct answer *answer)
{
	answer->state = ANSWER_MISSED;
	(void)snprintf(answer->text, sizeof(answer->text),
		       "its host's daemon has ended: %u result%s in its spool, for the next one",
		       answer->kept, answer->kept == 1 ? " waits" : "s wait");
}

void hub_lose_worker(struct hub *hub, uint32_t worker, const char *why)
{
	struct answer *answer = find_answer(hub, worker);

	if (hub->profile.active && answer != NULL &&
	    (answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN))
		set_missed(answer, why);
}

void hub_lose_host(struct hub *hub, const struct wire_state *state)
{
	struct answer *answer = find_answer(hub, state->worker);

	if (state->kept == 0)
		hub_lose_worker(hub, state->worker, "its host is silent");
	else if (answer != NULL)
		answer->kept = state->kept; /* the window's deadline is the limit */
}

/* Ranks of the job as those that run now see it: an elastic one may have had more. */
static int32_t world_size(const struct hub *hub)
{
	int32_t ret = -1;

	vec_foreach(state, &hub->workers) {
		if (wire_is_watched(state))
			ret = MAX(ret, state->world_size);
	}
	return ret;
}

/* Workers that cannot answer are reported as missing, too. */
static int fill_answers(struct hub *hub)
{
	int32_t world = world_size(hub);

	hub->profile.answers.cnt = 0;
	idmap_done(&hub->profile.places);
	vec_foreach(state, &hub->workers) {
		struct answer answer = { .worker = state->worker, .rank = state->rank };

		if (!wire_is_watched(state)) {
			if (state->rank < 0 || state->rank >= world)
				continue;
			set_missed(&answer, state->phase == PHASE_GONE
						    ? "its process has ended"
						    : "its hook is off, or its host is silent");
		}
		if (idmap_set(&hub->profile.places, answer.worker,
			      (uint32_t)hub->profile.answers.cnt) < 0 ||
		    vec_push(&hub->profile.answers, answer) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void fill_trigger(const struct hub *hub, const char *kind, const struct order_plan *plan,
			 struct report_trigger *ret)
{
	struct jobstate_pace pace;

	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	*ret = (struct report_trigger){
		.present = true,
		.kind = kind,
		.baseline_iteration_ms = (double)pace.baseline_ns / NSEC_PER_MSEC,
		.current_iteration_ms = (double)pace.now_ns / NSEC_PER_MSEC,
		.since_step = (int64_t)pace.slow_since_step,
		.step = (int64_t)plan->start_step,
	};
}

static int64_t iteration_ns(const struct hub *hub, const struct order_plan *plan)
{
	int64_t slowest_ns = 0;

	vec_foreach(state, &hub->workers) {
		if (wire_is_watched(state))
			slowest_ns = MAX(slowest_ns, state->step_ns);
	}
	return slowest_ns * plan->stride;
}

static void log_begin(const struct hub *hub, const struct order_plan *plan)
{
	const struct report_trigger *trigger = &hub->profile.trigger;

	keeper_event(hub->keeper, "order",
		     "%s: %zu workers, %" PRIu64 " iterations from step %" PRIu64, trigger->kind,
		     hub->profile.answers.cnt, plan->steps, plan->start_step);
	/* A check-up that finds nothing is one line, at its end. */
	if (hub->options->quiet || is_of_healthy_job(&hub->profile))
		return;
	log_line(LOG_INFO,
		 "event=profile why=%s workers=%zu first_step=%" PRIu64 " iterations=%" PRIu64
		 " baseline_ms=%.1f now_ms=%.1f",
		 trigger->kind, hub->profile.answers.cnt, plan->start_step, plan->steps,
		 trigger->baseline_iteration_ms, trigger->current_iteration_ms);
}

/* What another hub has to know to report it. */
static void fill_window(const struct hub *hub, struct wire_window *ret)
{
	const struct report_trigger *trigger = &hub->profile.trigger;

	*ret = (struct wire_window){ .baseline_ms = trigger->baseline_iteration_ms,
				     .now_ms = trigger->current_iteration_ms,
				     .since_step = trigger->since_step,
				     .step = trigger->step,
				     .workers = (uint32_t)hub->profile.answers.cnt };
	(void)snprintf(ret->kind, sizeof(ret->kind), "%s", trigger->kind);
}

static int order_profile(struct hub *hub, const struct profile_wish *wish, int64_t now_ns)
{
	struct plan_limits limits = { .window_ns = wish->window_ns,
				      .steps_max = wish->steps_max,
				      .now_ns = now_ns,
				      .late = hub->profile.late };
	struct order_plan plan = { 0 };
	struct wire_order order;
	int ret = plan_order(hub->workers.data, hub->workers.cnt, &limits, &plan);

	if (ret == 0)
		ret = fill_answers(hub);
	if (ret < 0)
		return ret;
	plan.id = ++hub->number;
	order = (struct wire_order){ .id = plan.id,
				     .start_step = plan.apart ? 0 : plan.start_step,
				     .window_ns = plan.window_ns,
				     .steps = plan.steps,
				     .stride = plan.stride };
	fill_trigger(hub, wish->kind, &plan, &hub->profile.trigger);
	fill_window(hub, &order.window);
	ret = bus_pub(hub->bus, SUBJECT_ORDER, &order, sizeof(order));
	if (ret < 0)
		return ret;
	hub->profile.active = true;
	hub->profile.begun = hub->profile.torch = hub->profile.canceled = false;
	hub->profile.id = plan.id;
	hub->profile.length_ns = iteration_ns(hub, &plan) * (int64_t)plan.steps;
	/* Profiled iterations may take several times as long. */
	hub->profile.deadline_ns = now_ns + BEGIN_GRACE_NS + plan_margin_ns(limits.late) +
				   4 * iteration_ns(hub, &plan) * (int64_t)(plan.steps + 2);
	log_begin(hub, &plan);
	return 0;
}

int hub_start_profile(struct hub *hub, const struct profile_wish *wish, int64_t now_ns)
{
	hub->profile.wish = *wish;
	hub->profile.tries = 1;
	return order_profile(hub, wish, now_ns);
}

/* After an order that came too late for all that could have begun. */
static bool order_again(struct hub *hub)
{
	struct profile_wish wish = hub->profile.wish;
	bool some = false;

	if (hub->profile.begun || hub->profile.recovered || hub->ending ||
	    hub->profile.tries > PLAN_LATE_MAX)
		return false;
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->state != ANSWER_MISSED)
			return false;
		some |= strcmp(answer->text, MISSED_LATE) == 0;
	}
	if (!some)
		return false;
	hub->profile.tries++;
	return order_profile(hub, &wish, clock_mono_ns()) == 0;
}

/* A worker whose host came when the order was given already, and carries it out, too. */
static struct answer *join_profile(struct hub *hub, uint32_t worker)
{
	struct answer fresh = { .worker = worker, .rank = -1 };

	vec_foreach(state, &hub->workers) {
		if (state->worker == worker)
			fresh.rank = state->rank;
	}
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->rank == fresh.rank) /* each rank once */
			return answer->state == ANSWER_MISSED ? answer : NULL;
	}
	if (fresh.rank < 0 ||
	    idmap_set(&hub->profile.places, worker, (uint32_t)hub->profile.answers.cnt) < 0 ||
	    vec_push(&hub->profile.answers, fresh) < 0)
		return NULL;
	return &hub->profile.answers.data[hub->profile.answers.cnt - 1];
}

/* Of a window that is over. */
static void note_late(struct hub *hub, const struct wire_answer *wire)
{
	char path[WIRE_TEXT];

	if (wire->outcome != OUTCOME_SUMMARIZED || wire->order_id == 0 ||
	    wire->order_id > hub->number)
		return;
	(void)snprintf(path, sizeof(path), "%.*s", WIRE_TEXT - 1, wire->text);
	vec_foreach(state, &hub->workers) {
		if (state->worker == wire->worker)
			hub_take_late(hub, wire->order_id, state->rank, path);
	}
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
	if (!hub->profile.active || wire->order_id != hub->profile.id) {
		note_late(hub, wire);
		return;
	}
	if (answer == NULL && wire->outcome != OUTCOME_MISSED)
		answer = join_profile(hub, wire->worker);
	if (answer == NULL || answer->state == ANSWER_READY ||
	    (answer->state == ANSWER_MISSED && wire->outcome != OUTCOME_SUMMARIZED))
		return;
	answer->state = states[wire->outcome];
	hub->profile.begun |= wire->outcome != OUTCOME_MISSED;
	if (strcmp(wire->text, MISSED_LATE) == 0 && hub->profile.late < hub->profile.tries)
		hub->profile.late = hub->profile.tries; /* more time for the next */
	if (wire->outcome == OUTCOME_BEGUN && strcmp(wire->text, SOURCE_TORCH) == 0)
		hub->profile.torch = true;
	answer->stall_ns = MAX(answer->stall_ns, wire->stall_ns);
	(void)snprintf(answer->text, sizeof(answer->text), "%.*s", WIRE_TEXT - 1, wire->text);
	hub->profile.deadline_ns = MAX(hub->profile.deadline_ns, clock_mono_ns() + ANSWER_GRACE_NS);
}

/*
 * What the window cost the job, over the share of time that windows may cost: so long until the
 * next one.
 */
static int64_t least_gap_ns(const struct hub *hub)
{
	struct wire_overhead overhead;
	double cost_ns = 0;

	overhead_results(&hub->overhead, &overhead);
	if (overhead.window.pair_cnt > 0)
		cost_ns = fmax(overhead.window.frac, 0) * (double)hub->profile.length_ns;
	vec_foreach(answer, &hub->profile.answers)
		cost_ns = fmax(cost_ns, (double)answer->stall_ns);
	if (hub->options->budget_window_frac <= 0)
		return 0;
	return (int64_t)fmin(cost_ns / hub->options->budget_window_frac, (double)LEAST_GAP_MAX_NS);
}

/* The trigger averages iterations from before the slowdown; a window may be a lucky one. */
static int64_t seen_ns(const struct hub *hub, const struct report *report)
{
	double seen_ms = hub->profile.trigger.current_iteration_ms;

	return report != NULL ? (int64_t)(fmax(seen_ms, report->iteration_ms) * NSEC_PER_MSEC) : 0;
}

/* What a check-up could not tell keeps the job from being called healthy at its end. */
static void note_checkup(struct hub *hub, const struct report *report)
{
	bool unclear =
		report->verdict == VERDICT_INCONCLUSIVE || report->verdict == VERDICT_INCOMPLETE;

	if (unclear)
		checkup_note_failed(&hub->checkup, report->reason);
	else
		checkup_note_passed(&hub->checkup);
}

/* Whether the report waits for a second window of the slowdown. */
static bool is_moment(const struct hub *hub, const struct report *report)
{
	return is_kind(&hub->profile, "slowdown") && !hub->ending && hub->askers.cnt == 0 &&
	       moment_waits(&hub->moment, report, jobwatch_slow_ns(&hub->watch, clock_mono_ns()));
}

/* Takes the report, which is published at the end of the job at the latest if it is slow then. */
static void keep_moment(struct hub *hub, const struct report *report)
{
	moment_keep(&hub->moment, report, hub->profile.id);
	if (!hub->options->quiet)
		log_line(LOG_INFO,
			 "event=report verdict=unconfirmed reason=\"%s\" next=\"another window, if "
			 "the job stays slow\"",
			 report->finding_cnt > 0 ? report->findings[0].title : report->reason);
}

/* report: NULL: none could be made. */
static void note_result(struct hub *hub, const struct report *report)
{
	enum jobwatch_result result = JOBWATCH_NO_WINDOW;
	bool found = report != NULL && report->verdict == VERDICT_ABNORMAL;

	if (report != NULL)
		result = found ? JOBWATCH_CAUSE : JOBWATCH_NO_CAUSE;
	if (found && is_moment(hub, report))
		result = JOBWATCH_UNCONFIRMED;
	else if (found && slowdown_unexplained_ms(report) > 0)
		result = JOBWATCH_NO_CAUSE; /* and more windows look for the rest */
	if (is_kind(&hub->profile, "slowdown"))
		jobwatch_note_result(&hub->watch, result, seen_ns(hub, report), least_gap_ns(hub),
				     clock_mono_ns());
	if (is_kind(&hub->profile, "slowdown") && report != NULL && !found)
		hub->quiet_slowdowns++;
}

/*
 * After a check-up or an early window: its fingerprints are what the job looked like before a later
 * slowdown. Returns whether they are kept.
 */
static bool keep_past(struct hub *hub, const struct analysis_input *input,
		      const struct report *report)
{
	int ret = 0;

	/* The job of an earlier hub may have changed since. */
	if (!is_of_healthy_job(&hub->profile) || input->absence_cnt > 0 || hub->profile.recovered)
		return false;
	if (is_checkup(&hub->profile) && !hub->checkup.done_steady)
		return false;
	/* The moment of a busy machine: the window before shows the job better. */
	if (hub->reference.end_step != 0 &&
	    report->iteration_ms > REFERENCE_SLOWER * hub->reference.iteration_ms)
		return false;
	hub->reference.iteration_ms = report->iteration_ms;
	reference_begin(&hub->reference, hub->workers.data, hub->workers.cnt);
	for (size_t i = 0; i < input->path_cnt && ret == 0; i++)
		ret = reference_add(&hub->reference, input->paths[i]);
	if (ret < 0)
		reference_drop(&hub->reference);
	return ret == 0;
}

/* past: room for the paths of hub->reference. */
static void add_past(const struct hub *hub, const char **past, struct analysis_input *input)
{
	uint64_t since_step = (uint64_t)hub->profile.trigger.since_step;

	if (is_of_healthy_job(&hub->profile) || since_step == 0 || hub->checkup.off)
		return;
	if (!reference_is_usable(&hub->reference, since_step, &input->note))
		return;
	vec_foreach(file, &hub->reference.files)
		past[input->past_cnt++] = file->path;
	input->past_paths = past;
	if (hub->reference.accused)
		input->note = "compared with the check-up, which had a finding of its own: the "
			      "job was not healthy before, either";
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
		if (answer->state != ANSWER_MISSED && answer->kept > 0)
			set_kept(answer);
		else if (answer->state != ANSWER_MISSED)
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
	if (is_checkup(&hub->profile)) {
		if (!hub->profile.recovered)
			checkup_note_failed(&hub->checkup, why);
		log_line(LOG_INFO, "event=checkup-failed why=\"%s\"", why);
		hub_reply(hub, -error, why);
		return;
	}
	if (is_kind(&hub->profile, PROFILE_EARLY))
		return;
	log_line(LOG_WARNING, "event=profile-failed why=\"%s\"", why);
	for (size_t i = 0; i < input->absence_cnt; i++)
		log_line(LOG_WARNING, "event=worker-missed rank=%d why=\"%s\"",
			 input->absences[i].rank, input->absences[i].why);
	hub_reply(hub, -error, why);
}

/* Takes the report of a check-up that needs a second window. */
static bool waits_for_another(struct hub *hub, struct report *report)
{
	const char *title = report->finding_cnt > 0 ? report->findings[0].title : "";

	/* Who asked for a report meanwhile gets this one. */
	if (hub->ending || hub->askers.cnt > 0 ||
	    !doubt_keeps(&hub->doubt, report, hub->profile.id))
		return false;
	checkup_note_doubted(&hub->checkup, clock_mono_ns());
	if (!hub->options->quiet)
		log_line(LOG_INFO,
			 "event=checkup verdict=unconfirmed finding=\"%s\" next=\"another window, "
			 "in %lld s\"",
			 title, (long long)(DOUBT_AGAIN_NS / NSEC_PER_SEC));
	return true;
}

/* Returns whether the report is to be published now. kept: its window is the job's past. */
static bool end_checkup(struct hub *hub, struct report *report, bool kept)
{
	if (waits_for_another(hub, report))
		return false;
	doubt_drop(&hub->doubt); /* this report answers it */
	if (!hub->profile.recovered)
		note_checkup(hub, report);
	if (kept)
		hub->reference.accused = report->verdict == VERDICT_ABNORMAL;
	return true;
}

static void finish_profile(struct hub *hub)
{
	size_t cnt = hub->profile.answers.cnt;
	_cleanup_free_ const char **paths = calloc(cnt + 1, sizeof(*paths));
	_cleanup_free_ struct analysis_absence *absences = calloc(cnt + 1, sizeof(*absences));
	_cleanup_free_ const char **past = calloc(hub->reference.files.cnt + 1, sizeof(*past));
	struct analysis_input input = { 0 };
	bool over = jobstate_living(hub->workers.data, hub->workers.cnt) == 0;
	struct err err = { "no worker delivered a trace" };
	struct report report;
	bool kept;
	int ret;

	if (order_again(hub))
		return;
	hub->profile.active = false;
	if (over)
		(void)err_set(&err, ENODATA, "the job ended before the window did");
	if (paths == NULL || absences == NULL || past == NULL)
		ret = err_set(&err, ENOMEM, "out of memory");
	else {
		ret = gather(hub, paths, absences, &input);
		add_past(hub, past, &input);
	}
	if (ret == 0)
		ret = analysis_run(&input, hub->options, &report, &err);
	if (!is_checkup(&hub->profile))
		note_result(hub, ret < 0 ? NULL : &report);
	if (ret < 0) {
		no_report(hub, &input, ret, err.text);
		return;
	}
	kept = keep_past(hub, &input, &report);
	hub_keep_window(hub);
	/* An early window may show the machine's start: what it accuses waits for a check-up. */
	hub->compared |=
		report.verdict == VERDICT_HEALTHY ||
		(report.verdict == VERDICT_ABNORMAL && !is_kind(&hub->profile, PROFILE_EARLY));
	if (is_kind(&hub->profile, PROFILE_EARLY)) {
		report_done(&report);
		return;
	}
	if (is_checkup(&hub->profile) && !end_checkup(hub, &report, kept))
		return;
	if (is_moment(hub, &report)) {
		keep_moment(hub, &report);
		return;
	}
	hub_publish_report(hub, &report, hub->profile.id, is_kind(&hub->profile, PROFILE_REQUEST));
}

void hub_finish_profile(struct hub *hub)
{
	const struct profile *profile = &hub->profile;
	uint64_t epoch = profile->recovered ? profile->epoch : hub->epoch;
	uint64_t order_id = profile->recovered ? profile->order_id : profile->id;

	keeper_begin(hub->keeper);
	finish_profile(hub);
	hub_mark_profile(hub, epoch, order_id); /* also of an order that is repeated */
	keeper_end(hub->keeper);
}

/* The window of a worker that hangs does not end; the report of the hang should not wait for it. */
static bool a_worker_hangs(const struct hub *hub)
{
	if (hang_job_is_ending(hub->workers.data, hub->workers.cnt))
		return false;
	vec_foreach(state, &hub->workers) {
		if (wire_is_watched(state) && state->phase == PHASE_BLOCKED)
			return true;
	}
	return false;
}

void hub_watch_profile(struct hub *hub, int64_t now_ns)
{
	bool late = now_ns >= hub->profile.deadline_ns || a_worker_hangs(hub), complete = true;

	vec_foreach(answer, &hub->profile.answers)
		complete &= answer->state == ANSWER_READY || answer->state == ANSWER_MISSED;
	hub->profile.canceled = late && !complete; /* publish_progress() tells hostd */
	if (late || complete)
		hub_finish_profile(hub);
}
