/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/hub.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "detect/jobwatch.h"
#include "format/shared/block.h"
#include "format/shared/message.h"
#include "live/hub/analysis.h"
#include "live/hub/hang.h"
#include "live/hub/jobstate.h"
#include "live/hub/overhead.h"
#include "live/hub/plan.h"
#include "live/hub/publish.h"
#include "live/hub/quiet.h"
#include "live/link/wire_hang.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORKER_MAX 65536u
#define ASKER_MAX 64u

/* Waiting for answers: so long after the window should have ended, and again after each answer. */
#define BEGIN_GRACE_NS (60 * NSEC_PER_SEC)
#define ANSWER_GRACE_NS (120 * NSEC_PER_SEC)

enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_EXPORTED, ANSWER_READY, ANSWER_MISSED };

/* One worker's answer to the order. */
struct answer {
	uint32_t worker;
	int rank;
	enum answer_state state;
	int64_t stall_ns;
	char text[WIRE_TEXT]; /* the fingerprint's path, or the reason why it is missing */
};

struct profile {
	bool active;
	uint64_t id;
	struct report_trigger trigger;
	VEC(struct answer) answers;
	int64_t deadline_ns;
	bool begun; /* at least one worker */
	bool torch; /* torch.profiler recorded at least one worker of the latest */
};

struct hub {
	struct bus *bus;
	const struct run_options *options;
	struct bus_sub *subs[5];
	VEC(struct wire_state) workers; /* one that ended stays until its rank connects again */
	VEC(struct wire_where) wheres;	/* of the latest hang, by worker */
	VEC(uint64_t) askers;		/* clients of hostd that wait for a report */
	struct jobwatch watch;
	struct overhead overhead;
	struct profile profile;
	uint64_t epoch, sequence; /* of struct wire_profile */
	uint64_t
		number; /* of the latest profile or report; part of its file names, and the order's id */
	unsigned quiet_slowdowns;     /* profiled, without a finding */
	unsigned quiet_standstills;   /* hangs reported, without a finding */
	bool found;		      /* at least one report was abnormal */
	struct wire_state first_gone; /* first worker to end without MSG_BYE; worker 0: none */
	char shown[64];		      /* the job's state as last logged */
};

/* Workers */

static struct wire_state *find_worker(const struct hub *hub, uint32_t worker)
{
	vec_foreach(state, &hub->workers) {
		if (state->worker == worker)
			return state;
	}
	return NULL;
}

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

/* A worker that has exported its trace stays in the profile. */
static void note_gone(struct hub *hub, const struct wire_state *state)
{
	struct answer *answer = find_answer(hub, state->worker);

	if (!state->bye && hub->first_gone.worker == 0)
		hub->first_gone = *state;
	if (!state->bye)
		log_line(LOG_WARNING, "event=worker-gone rank=%d pid=%u step=%" PRIu64, state->rank,
			 state->pid, state->step);
	if (hub->profile.active && answer != NULL &&
	    (answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN))
		set_missed(answer, "its process ended during the profile");
}

/* The ended process that a restarted rank replaces. */
static struct wire_state *find_predecessor(const struct hub *hub, int32_t rank)
{
	vec_foreach(state, &hub->workers) {
		if (state->rank == rank && state->phase == PHASE_GONE)
			return state;
	}
	return NULL;
}

static void note_silent(struct hub *hub, const struct wire_state *state)
{
	struct answer *answer = find_answer(hub, state->worker);

	log_line(LOG_WARNING, "event=hook-disabled rank=%d pid=%u step=%" PRIu64, state->rank,
		 state->pid, state->step);
	if (hub->profile.active && answer != NULL &&
	    (answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN))
		set_missed(answer, "its hook has switched itself off");
}

static void take_state(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	const struct wire_state *state = message->data;
	struct wire_state *known;

	if (message->len != sizeof(*state))
		return;
	known = find_worker(hub, state->worker);
	if (known == NULL)
		known = find_predecessor(hub, state->rank);
	if (state->phase == PHASE_GONE && (known == NULL || known->phase != PHASE_GONE))
		note_gone(hub, state);
	if (state->phase == PHASE_SILENT && (known == NULL || known->phase != PHASE_SILENT))
		note_silent(hub, state);
	if (known != NULL)
		*known = *state;
	else if (hub->workers.cnt < WORKER_MAX)
		(void)vec_push(&hub->workers,
			       *state); /* out of memory: hostd repeats it in 100 ms */
}

static void take_where(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	const struct wire_where *where = message->data;

	if (message->len != sizeof(*where) || !wire_where_valid(where))
		return;
	vec_foreach(known, &hub->wheres) {
		if (known->worker == where->worker) {
			*known = *where;
			return;
		}
	}
	if (hub->wheres.cnt < WORKER_MAX)
		(void)!vec_push(&hub->wheres, *where); /* out of memory: the worker's is unknown */
}

/* Profiles */

static void reply_to_askers(struct hub *hub, int status, const char *text)
{
	struct wire_reply told = { .status = status };

	(void)snprintf(told.text, sizeof(told.text), "%s", text);
	vec_foreach(client, &hub->askers) {
		told.client = *client;
		(void)bus_pub(hub->bus, SUBJECT_REPLY, &told, sizeof(told));
	}
	hub->askers.cnt = 0;
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

static int start_profile(struct hub *hub, const char *kind, int64_t window_ns, int64_t now_ns)
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

static void take_answer(void *arg, const struct bus_message *message)
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

static void take_ask(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	const struct wire_ask *ask = message->data;
	int64_t window_ns;
	int ret = 0;

	if (message->len != sizeof(*ask))
		return;
	window_ns = ask->window_ns > 0 && ask->window_ns < INT64_MAX ? (int64_t)ask->window_ns
								     : hub->options->window_ns;
	if (hub->askers.cnt >= ASKER_MAX || vec_push(&hub->askers, ask->client) < 0) {
		struct wire_reply busy = { .client = ask->client, .status = EBUSY };

		(void)snprintf(busy.text, sizeof(busy.text), "too many requests are waiting");
		(void)bus_pub(hub->bus, SUBJECT_REPLY, &busy, sizeof(busy));
		return;
	}
	if (!hub->profile.active) /* else the profile under way answers this request, too */
		ret = start_profile(hub, "request", window_ns, clock_mono_ns());
	if (ret == -EAGAIN)
		reply_to_askers(hub, EAGAIN,
				jobstate_living(hub->workers.data, hub->workers.cnt) == 0
					? "no training process is connected (yet)"
					: "no worker has shown its iteration time yet: try "
					  "again in a few iterations");
	else if (ret < 0)
		reply_to_askers(hub, -ret, strerror(-ret));
}

/* Reports */

static struct report_cost cost_of(const struct wire_cost *cost)
{
	return (struct report_cost){ .known = cost->pair_cnt > 0,
				     .pct = cost->frac * 100.0,
				     .error_pct = cost->error_frac * 100.0 };
}

static void fill_overhead(const struct hub *hub, struct report_overhead *ret)
{
	struct wire_overhead overhead;

	overhead_results(&hub->overhead, &overhead);
	*ret = (struct report_overhead){
		.present = true,
		.torch = hub->profile.torch,
		.always = cost_of(&overhead.always),
		.window = cost_of(&overhead.window),
		.less_samples = (overhead.backoff & BACKOFF_SAMPLES) != 0,
		.no_operators = (overhead.backoff & BACKOFF_OPERATORS) != 0,
		.only_marks = (overhead.backoff & BACKOFF_ALWAYS) != 0,
	};
}

/* Publishes and frees the report. wanted: print it even without a finding. */
static void hand_out(struct hub *hub, struct report *report, uint64_t number, bool wanted)
{
	struct wire_report digest;
	char path[4200];
	struct err err;
	int ret;

	if (report->verdict == VERDICT_ABNORMAL)
		hub->found = true;
	fill_overhead(hub, &report->overhead);
	publish_digest(report, &digest);
	(void)bus_pub(hub->bus, SUBJECT_REPORT, &digest, sizeof(digest));
	ret = publish_files(report, hub->options, number, &err);
	if (ret < 0)
		log_line(LOG_ERROR, "event=report-not-written why=\"%s\"", err.text);
	if (wanted || report->verdict == VERDICT_ABNORMAL)
		publish_print(report, hub->options);
	else if (!hub->options->quiet)
		log_line(LOG_INFO, "event=report verdict=%s reason=\"%s\"",
			 verdict_name(report->verdict), report->reason);
	(void)snprintf(path, sizeof(path), "%s/report-%" PRIu64 ".html", hub->options->out_dir,
		       number);
	if (ret == 0 && !hub->options->quiet)
		log_line(LOG_INFO, "event=report-written file=%s", path);
	reply_to_askers(hub, ret < 0 ? -ret : 0, ret < 0 ? err.text : path);
	arena_done(&report->arena);
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
	reply_to_askers(hub, -error, why);
}

static void finish_profile(struct hub *hub)
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
	hand_out(hub, &report, hub->profile.id, requested);
}

/* Publishes an order without steps: a late worker must not begin to profile. */
static void cancel_order(struct hub *hub)
{
	struct wire_order order = { .id = hub->profile.id };

	(void)bus_pub(hub->bus, SUBJECT_ORDER, &order, sizeof(order));
}

static void watch_profile(struct hub *hub, int64_t now_ns)
{
	bool late = now_ns >= hub->profile.deadline_ns, complete = true;

	vec_foreach(answer, &hub->profile.answers)
		complete &= answer->state == ANSWER_READY || answer->state == ANSWER_MISSED;
	if (late && !complete)
		cancel_order(hub);
	if (late || complete)
		finish_profile(hub);
}

static void report_blocked(struct hub *hub, int64_t now_ns)
{
	struct report report;
	const struct hang_facts facts = { .states = hub->workers.data,
					  .cnt = hub->workers.cnt,
					  .wheres = hub->wheres.data,
					  .where_cnt = hub->wheres.cnt,
					  .now_ns = now_ns };

	if (hang_report(&facts, &report) < 0) {
		log_line(LOG_ERROR, "event=report-not-made why=\"out of memory\"");
		return;
	}
	hub->quiet_standstills += report.verdict != VERDICT_ABNORMAL;
	hand_out(hub, &report, ++hub->number, true);
}

/* Decisions */

static enum detector_state detector_state_of(const struct wire_state *state, bool ending)
{
	switch ((enum wire_phase)state->phase) {
	case PHASE_STEADY:
	case PHASE_PROFILING:
		return DETECTOR_WATCHING;
	case PHASE_SLOW:
		return DETECTOR_SLOW;
	case PHASE_BLOCKED:
		return ending ? DETECTOR_LEARNING : DETECTOR_BLOCKED;
	case PHASE_LEARNING:
	case PHASE_GONE:
	case PHASE_SILENT:
		break;
	}
	return DETECTOR_LEARNING;
}

static void decide(struct hub *hub, int64_t now_ns)
{
	_cleanup_free_ enum detector_state *states = NULL;
	bool ending = hang_job_is_ending(hub->workers.data, hub->workers.cnt);
	enum job_decision decision;
	bool excused;
	size_t cnt = 0;

	states = calloc(hub->workers.cnt + 1, sizeof(*states));
	if (states == NULL)
		return;
	excused = overhead_excuses(&hub->overhead, hub->workers.data, hub->workers.cnt);
	vec_foreach(state, &hub->workers) {
		if (!wire_is_watched(state))
			continue;
		states[cnt] = detector_state_of(state, ending);
		if (excused && states[cnt] == DETECTOR_SLOW)
			states[cnt] = DETECTOR_WATCHING;
		cnt++;
	}
	decision = jobwatch_update(&hub->watch, states, cnt, now_ns);
	if (decision == JOB_BLOCKED)
		report_blocked(hub, now_ns);
	else if (decision == JOB_SLOW)
		(void)start_profile(hub, "slowdown", hub->options->window_ns, now_ns);
}

/* Overhead */

static void take_slices_cost(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;

	if (message->len == sizeof(struct wire_slices_cost))
		overhead_add_cost(&hub->overhead, message->data);
}

static void log_overhead(const struct hub *hub, const struct wire_overhead *overhead)
{
	struct str text = { 0 };

	if (hub->options->quiet)
		return;
	overhead_describe(overhead, &text);
	log_line(LOG_INFO, "event=audit %s", str_borrow(&text));
	str_done(&text);
}

static void watch_cost(struct hub *hub, int64_t now_ns)
{
	struct wire_slices order;
	struct wire_overhead overhead;
	unsigned actions = overhead_tick(&hub->overhead, hub->workers.data, hub->workers.cnt,
					 !hub->profile.active, now_ns, &order);

	if ((actions & OVERHEAD_SEND) != 0)
		(void)bus_pub(hub->bus, SUBJECT_SLICES, &order, sizeof(order));
	if ((actions & OVERHEAD_PUBLISH) == 0)
		return;
	overhead_results(&hub->overhead, &overhead);
	(void)bus_pub(hub->bus, SUBJECT_COST, &overhead, sizeof(overhead));
	log_overhead(hub, &overhead);
}

static void log_change(struct hub *hub)
{
	const char *word = jobstate_word(hub->workers.data, hub->workers.cnt, hub->profile.active);
	struct str line = { 0 };

	if (strcmp(word, hub->shown) == 0)
		return;
	(void)snprintf(hub->shown, sizeof(hub->shown), "%s", word);
	if (hub->options->quiet || hub->options->terminal)
		return;
	hub_status(hub, &line);
	log_line(LOG_INFO, "event=state %s", str_borrow(&line));
	str_done(&line);
}

static void publish_progress(struct hub *hub)
{
	struct wire_profile progress = { .epoch = hub->epoch, .sequence = ++hub->sequence };

	if (hub->profile.active)
		progress.progress = hub->profile.begun ? PROFILE_BEGUN : PROFILE_ORDERED;
	(void)bus_pub(hub->bus, SUBJECT_PROFILE, &progress, sizeof(progress));
}

void hub_tick(struct hub *hub, int64_t now_ns)
{
	if (hub->profile.active)
		watch_profile(hub, now_ns);
	else
		decide(hub, now_ns);
	publish_progress(hub);
	watch_cost(hub, now_ns);
	log_change(hub);
}

bool hub_idle(const struct hub *hub)
{
	return !hub->profile.active;
}

void hub_finish(struct hub *hub, int exit_status)
{
	struct quiet_facts facts = { .states = hub->workers.data,
				     .cnt = hub->workers.cnt,
				     .slowdowns = hub->quiet_slowdowns,
				     .standstills = hub->quiet_standstills,
				     .exit_status = exit_status };
	const struct wire_state *first = &hub->first_gone;
	struct report report;
	struct err err;

	if (first->worker != 0)
		facts.first_gone = first;
	if (hub->profile.active)
		finish_profile(hub);
	reply_to_askers(hub, ESRCH, "the job has ended");
	if (hub->found || quiet_report(&facts, &report) < 0)
		return;
	fill_overhead(hub, &report.overhead);
	if (publish_files(&report, hub->options, 0, &err) < 0)
		log_line(LOG_ERROR, "event=report-not-written why=\"%s\"", err.text);
	if (!hub->options->quiet)
		publish_print(&report, hub->options);
	arena_done(&report.arena);
}

void hub_status(const struct hub *hub, struct str *out)
{
	jobstate_append(hub->workers.data, hub->workers.cnt, hub->profile.active, out);
}

int hub_open(struct bus *bus, const struct run_options *options, struct hub **ret)
{
	struct jobwatch_config config = jobwatch_default_config;
	struct hub *hub = calloc(1, sizeof(*hub));
	int r;

	if (hub == NULL)
		return -ENOMEM;
	hub->bus = bus;
	hub->options = options;
	hub->epoch = (uint64_t)clock_wall_ns();
	config.min_gap_ns = options->min_gap_ns;
	jobwatch_init(&hub->watch, &config);
	overhead_init(&hub->overhead, options);
	r = bus_sub(bus, SUBJECT_STATE, take_state, hub, &hub->subs[0]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_ANSWER, take_answer, hub, &hub->subs[1]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_ASK, take_ask, hub, &hub->subs[2]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_SLICES_COST, take_slices_cost, hub, &hub->subs[3]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_WHERE, take_where, hub, &hub->subs[4]);
	if (r < 0) {
		(void)hub_close(hub);
		return r;
	}
	*ret = hub;
	return 0;
}

struct hub *hub_close(struct hub *hub)
{
	if (hub == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(hub->subs); i++)
		hub->subs[i] = bus_unsub(hub->bus, hub->subs[i]);
	vec_done(&hub->workers);
	vec_done(&hub->wheres);
	vec_done(&hub->askers);
	vec_done(&hub->profile.answers);
	overhead_done(&hub->overhead);
	free(hub);
	return NULL;
}
