/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "format/shared/block.h"
#include "live/hub/hub_parts.h"
#include "live/hub/hublive.h"
#include "live/hub/jobstate.h"
#include "live/hub/keeping.h"
#include "live/hub/publish.h"
#include "live/link/wire_stalls.h"
#include "live/overhead/costtext.h"
#include "live/recall/recall.h"
#include "live/recovery/takennumbers.h"
#include "model/thresholds.h"
#include "report/phrase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Ranks that did not connect after so many iterations of the others are not of this run. */
#define PART_ITERATIONS 20

#define PROFILE_ASKED_NS (30 * NSEC_PER_SEC) /* a request waits so long for two iterations */

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
	if (hub->wheres.cnt < HUB_WORKER_MAX)
		(void)!vec_push(&hub->wheres, *where); /* out of memory: the worker's is unknown */
}

/* Requests */

void hub_reply(struct hub *hub, int status, const char *text)
{
	struct wire_reply reply = { .status = status };

	(void)snprintf(reply.text, sizeof(reply.text), "%s", text);
	vec_foreach(client, &hub->askers) {
		reply.client = *client;
		(void)bus_pub(hub->bus, SUBJECT_REPLY, &reply, sizeof(reply));
	}
	hub->askers.cnt = 0;
}

static void reply_one(struct hub *hub, uint64_t client, int status, const char *text)
{
	struct wire_reply reply = { .client = client, .status = status };

	(void)snprintf(reply.text, sizeof(reply.text), "%s", text);
	(void)bus_pub(hub->bus, SUBJECT_REPLY, &reply, sizeof(reply));
}

/* A person says that the slow pace is as it should be. */
static void accept_pace(struct hub *hub, const struct wire_ask *ask)
{
	struct wire_accept accept = { .step = jobstate_step(hub->workers.data, hub->workers.cnt) };
	struct jobstate_pace pace;
	struct str text = { 0 };

	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	if (pace.slow_since_step == 0 ||
	    jobstate_living(hub->workers.data, hub->workers.cnt) == 0) {
		reply_one(hub, ask->client, EINVAL, "the job is not slow: nothing to accept");
		return;
	}
	if (bus_pub(hub->bus, SUBJECT_ACCEPT, &accept, sizeof(accept)) < 0) {
		reply_one(hub, ask->client, EAGAIN, "the daemon is busy: try again");
		return;
	}
	hub->accepted = true;
	reference_drop(&hub->reference); /* shows the pace that is no longer the job's */
	checkup_note_past_lost(&hub->checkup);
	str_printf(&text, "baseline %.1f -> %.1f ms accepted at step %" PRIu64,
		   (double)pace.baseline_ns / NSEC_PER_MSEC, (double)pace.now_ns / NSEC_PER_MSEC,
		   accept.step);
	log_line(LOG_INFO, "event=pace-accepted by_pid=%u slow_since=%" PRIu64 " what=\"%s\"",
		 ask->pid, pace.slow_since_step, str_borrow(&text));
	keeper_event(hub->keeper, "accepted", "%s", str_borrow(&text));
	reply_one(hub, ask->client, 0, str_borrow(&text));
	str_done(&text);
}

/* An order that a person asked for is logged with the user and the reason, if they were given. */
static void note_asked(struct hub *hub, const char *why)
{
	if (why[0] == '\0')
		return;
	keeper_event(hub->keeper, "asked", "order %" PRIu64 " by %s", hub->profile.id, why);
	log_line(LOG_INFO, "event=profile-asked order=%" PRIu64 " by=\"%s\"", hub->profile.id, why);
}

/*
 * The pace of the workers is not known at first, nor right after a window: the request waits for two
 * iterations then.
 */
static void start_asked(struct hub *hub, int64_t now_ns)
{
	struct profile_wish wish = { PROFILE_REQUEST, hub->asked_window_ns,
				     hub->options->steps_max };
	bool living = jobstate_living(hub->workers.data, hub->workers.cnt) > 0;
	int ret = hub_start_profile(hub, &wish, now_ns);

	if (ret == -EAGAIN && living && now_ns < hub->asked_until_ns)
		return;
	hub->asked_until_ns = 0;
	if (ret == 0)
		note_asked(hub, hub->asked_why);
	if (ret == -EAGAIN)
		hub_reply(hub, EAGAIN,
			  living ? "no worker has shown its iteration time yet: try "
				   "again in a few iterations"
				 : "no training process is connected (yet)");
	else if (ret < 0)
		hub_reply(hub, -ret, strerror(-ret));
}

/* Several may ask before the order begins: each is logged with it. */
static void keep_why(struct hub *hub, const char *why)
{
	size_t len = hub->asked_until_ns > 0 ? strlen(hub->asked_why) : 0;

	(void)snprintf(hub->asked_why + len, sizeof(hub->asked_why) - len, "%s%s",
		       len > 0 && why[0] != '\0' ? "; " : "", why);
}

static void take_profile_ask(struct hub *hub, const struct wire_ask *ask)
{
	int64_t now_ns = clock_mono_ns(), window_ns;

	window_ns = ask->window_ns > 0 && ask->window_ns < INT64_MAX ? (int64_t)ask->window_ns
								     : hub->options->window_ns;
	if (hub->askers.cnt >= HUB_ASKERS_MAX || vec_push(&hub->askers, ask->client) < 0) {
		reply_one(hub, ask->client, EBUSY, "too many requests are waiting");
		return;
	}
	/* A profile under way answers this request, too. */
	if (hub->profile.active && strcmp(hub->profile.trigger.kind, PROFILE_EARLY) == 0)
		hub->profile.trigger.kind = PROFILE_REQUEST;
	if (hub->profile.active) {
		note_asked(hub, ask->why);
		return;
	}
	keep_why(hub, ask->why);
	if (hub->asked_until_ns > 0)
		return;
	hub->asked_window_ns = window_ns;
	hub->asked_until_ns = now_ns + PROFILE_ASKED_NS;
	start_asked(hub, now_ns);
}

static void take_ask(void *arg, const struct bus_message *message)
{
	const struct hub *hub = arg;
	const struct wire_ask *ask = message->data;

	if (message->len != sizeof(*ask) || hub->led ||
	    memchr(ask->why, '\0', WIRE_ASK_WHY) == NULL)
		return;
	if (ask->kind == ASK_ACCEPT)
		accept_pace(arg, ask);
	else
		take_profile_ask(arg, ask);
}

/* Reports */

void hub_fill_overhead(const struct hub *hub, struct report_overhead *ret)
{
	struct wire_overhead overhead;

	overhead_results(&hub->overhead, &overhead);
	costtext_of(&overhead, &hub->own, hub->profile.torch, ret);
}

/* A check-up without a finding: a line in the log and files, but nothing to act on. */
static bool is_quiet_checkup(const struct report *report)
{
	return report->trigger.present && strcmp(report->trigger.kind, "checkup") == 0 &&
	       report->verdict != VERDICT_ABNORMAL;
}

void hub_remember_report(struct hub *hub, const struct report *report, uint64_t number)
{
	struct last_report *last = &hub->last;
	struct str text = { 0 };

	last->present = true;
	last->verdict = report->verdict;
	last->slow_since_step = report->trigger.present ? report->trigger.since_step : 0;
	phrase_verdict(&text, report);
	(void)snprintf(last->reason, sizeof(last->reason), "%s", str_borrow(&text));
	str_done(&text);
	if (number == 0)
		(void)snprintf(last->path, sizeof(last->path), "%s/report.html",
			       hub->options->out_dir);
	else
		(void)snprintf(last->path, sizeof(last->path), "%s/report-%" PRIu64 ".html",
			       hub->options->out_dir, number);
}

static bool is_of_slow_job(const struct report *report)
{
	return trigger_is_slow(&report->trigger);
}

void hub_fill_pace(const struct hub *hub, struct report *report)
{
	struct jobstate_pace pace;

	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	pacelog_fill(&hub->pacelog, pace.best_ns, report);
}

static void note_memory(const struct hub *hub, struct report *report)
{
	const struct keeper_memory *memory = keeper_borrow_memory(hub->keeper);
	struct earlier_answer earlier;

	if (memory == NULL)
		return;
	recall_note_returned(report, &memory->past, &memory->earlier);
	recall_note_hosts(report, &memory->hosts);
	if (keeper_compare(hub->keeper, (uint32_t)hub->workers.cnt, &earlier) &&
	    earlier.verdict == EARLIER_SLOWER)
		recall_note_pace(report, &earlier, keeper_borrow_key(hub->keeper));
}

void hub_publish_report(struct hub *hub, struct report *report, uint64_t number, bool wanted)
{
	struct wire_report digest;
	bool brief = is_quiet_checkup(report) && hub->askers.cnt == 0;
	/* The report of a fault stays the latest, and so does one of a later window. */
	bool aside = (brief && hub->found) || (hub->profile.recovered && hub->last.present);
	struct err err;
	int ret;

	doubt_drop(&hub->doubt); /* this report is newer */
	/* A window that lacks ranks contradicts nothing. */
	if (is_of_slow_job(report) && report->verdict != VERDICT_INCOMPLETE)
		doubt_drop(&hub->moment.first);
	if (report->verdict == VERDICT_ABNORMAL)
		hub->found = true;
	hub_fill_overhead(hub, &report->overhead);
	jobstate_loop(hub->workers.data, hub->workers.cnt, &report->loop);
	publish_origin(hub->options, hub->workers.data, hub->workers.cnt, report);
	hub_fill_pace(hub, report);
	note_memory(hub, report);
	if (!aside)
		hub_remember_report(hub, report, number);
	if (is_of_slow_job(report))
		history_report(&hub->history, number, report->verdict);
	publish_digest(report, &digest);
	digest.number = number;
	(void)snprintf(digest.reason, sizeof(digest.reason), "%s", report->reason);
	(void)bus_pub(hub->bus, SUBJECT_REPORT, &digest, sizeof(digest));
	ret = aside ? publish_numbered(report, hub->options, number, &err)
		    : publish_files(report, hub->options, number, &err);
	if (ret < 0)
		log_line(LOG_ERROR, "event=report-not-written why=\"%s\"", err.text);
	else
		publish_text(report, hub->options, number, !aside);
	keeper_report(hub->keeper, report, number);
	webhook_report(hub->webhook, report, number);
	if (wanted || verdict_is_bad(report->verdict))
		publish_print(report, hub->options);
	else if (!hub->options->quiet)
		log_line(LOG_INFO, "event=%s verdict=%s reason=\"%s\"",
			 brief ? "checkup" : "report", verdict_name(report->verdict),
			 report->reason);
	if (ret == 0 && !hub->options->quiet && !brief)
		log_line(LOG_INFO, "event=report-written file=\"%s\"", hub->last.path);
	hub_reply(hub, ret < 0 ? -ret : 0, ret < 0 ? err.text : hub->last.path);
	/* hostd may look for what else it finds. The report of a check-up aside stays aside. */
	if (aside || hub->ending)
		arena_done(&report->arena);
	else
		stallnotes_keep(&hub->stallnotes, report, number);
}

static struct stallpace pace_now(const struct hub *hub)
{
	struct jobstate_pace pace;

	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	return (struct stallpace){ .baseline_ms = (double)pace.baseline_ns / NSEC_PER_MSEC,
				   .now_ms = (double)pace.now_ns / NSEC_PER_MSEC };
}

/* Publishes the latest report again, with what a stall window saw. */
static void take_stalls(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;
	const struct wire_stalls *stalls = message->data;
	struct stallnotes *notes = &hub->stallnotes;
	struct err err = { "out of memory" };
	const struct stallpace pace = pace_now(hub);
	int error;

	if (message->len != sizeof(*stalls) || stalls->line_cnt == 0)
		return;
	error = stallnotes_add(notes, stalls, &pace);
	if (error == -ENOENT)
		return; /* another report was published meanwhile */
	if (error == 0)
		error = publish_files(&notes->report, hub->options, notes->number, &err);
	if (error == 0) {
		publish_text(&notes->report, hub->options, notes->number, true);
		keeper_report(hub->keeper, &notes->report,
			      notes->number); /* in place of the first */
	} else
		log_line(LOG_ERROR, "event=report-not-written why=\"%s\"", err.text);
	for (size_t i = 0; i < MIN(stalls->line_cnt, WIRE_STALL_LINES) && !hub->options->quiet; i++)
		log_line(LOG_INFO, "event=stall-window report=%" PRIu64 " found=\"%.*s\"",
			 notes->number, (int)sizeof(stalls->lines[0]) - 1, stalls->lines[i]);
	stallnotes_drop(notes);
}

/* Overhead */

static void take_slices_cost(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;

	if (message->len == sizeof(struct wire_slices_cost))
		overhead_add_cost(&hub->overhead, message->data);
}

void hub_log_cost(const struct hub *hub, const char *event)
{
	struct report_overhead overhead;

	if (hub->options->quiet)
		return;
	hub_fill_overhead(hub, &overhead);
	costtext_log(event, &overhead);
}

static void take_own(void *arg, const struct bus_message *message)
{
	struct hub *hub = arg;

	if (message->len == sizeof(hub->own))
		memcpy(&hub->own, message->data, sizeof(hub->own));
}

static void watch_cost(struct hub *hub, int64_t now_ns)
{
	struct wire_slices order;
	struct wire_overhead overhead;
	bool quiet = !hub->profile.active && !hub_holds_audit(hub, now_ns);
	unsigned actions = overhead_tick(&hub->overhead, hub->workers.data, hub->workers.cnt, quiet,
					 now_ns, &order);

	if ((actions & OVERHEAD_SEND) != 0)
		(void)bus_pub(hub->bus, SUBJECT_SLICES, &order, sizeof(order));
	if ((actions & OVERHEAD_PUBLISH) == 0)
		return;
	overhead_results(&hub->overhead, &overhead);
	(void)bus_pub(hub->bus, SUBJECT_COST, &overhead, sizeof(overhead));
	hub_log_cost(hub, "overhead");
}

static void log_change(struct hub *hub)
{
	const char *word = jobstate_word(hub->workers.data, hub->workers.cnt, hub->profile.active);
	struct str line = { 0 };

	/* Noise makes a worker slow for moments: a job is slow once that lasts. */
	if (strcmp(word, "slow") == 0 && !jobwatch_is_slow(&hub->watch))
		return;
	if (strcmp(word, hub->shown) == 0)
		return;
	(void)snprintf(hub->shown, sizeof(hub->shown), "%s", word);
	keeper_event(hub->keeper, "state", "%s", word);
	if (hub->options->quiet)
		return;
	hub_status(hub, &line);
	log_line(LOG_INFO, "event=state %s", str_borrow(&line));
	str_done(&line);
}

/* A run on one of several hosts says early that it sees a part of the job only. */
static void log_part(struct hub *hub)
{
	int world_size = 0;
	uint64_t iterations = 0;

	vec_foreach(state, &hub->workers) {
		world_size = MAX(world_size, state->world_size);
		iterations = MAX(iterations, state->iterations);
	}
	if (hub->part_logged || iterations < PART_ITERATIONS || (int)hub->workers.cnt >= world_size)
		return;
	hub->part_logged = true;
	log_line(LOG_WARNING, "event=part-of-job ranks=%zu world_size=%d", hub->workers.cnt,
		 world_size);
}

/* Summaries and the report are made beside the job, which must not go unwatched for so long. */
static enum wire_progress progress_of(const struct profile *profile)
{
	if (!profile->active)
		return PROFILE_NONE;
	if (!profile->begun)
		return PROFILE_ORDERED;
	vec_foreach(answer, &profile->answers) {
		if (answer->state == ANSWER_NONE || answer->state == ANSWER_BEGUN)
			return PROFILE_BEGUN;
	}
	return PROFILE_NONE;
}

static void publish_progress(struct hub *hub)
{
	struct wire_profile progress = { .epoch = hub->epoch,
					 .sequence = ++hub->sequence,
					 .progress = progress_of(&hub->profile),
					 .restarts = hub->lives.restarts,
					 .canceled = hub->profile.canceled ? hub->profile.id : 0 };

	(void)bus_pub(hub->bus, SUBJECT_PROFILE, &progress, sizeof(progress));
}

/* A worker connects with its first mark. Compiling may take as long: the line is no alarm. */
static void advise(struct hub *hub, int64_t now_ns)
{
	if (hub->first_tick_ns == 0)
		hub->first_tick_ns = now_ns;
	if (hub->advised || hub->workers.cnt > 0 || now_ns - hub->first_tick_ns < HUB_NO_MARKS_NS)
		return;
	hub->advised = true;
	log_line(LOG_WARNING, "event=no-iterations seconds=%lld remedy=\"%s\"",
		 (long long)(HUB_NO_MARKS_NS / NSEC_PER_SEC), ENDING_ADVICE);
}

/* While a window is open the job is slower than it is. */
static void log_pace(struct hub *hub)
{
	uint64_t step = jobstate_step(hub->workers.data, hub->workers.cnt);
	struct jobstate_pace pace;

	jobstate_pace(hub->workers.data, hub->workers.cnt, &pace);
	/* Step 0: all ranks have ended, or none has begun. */
	if (hub->profile.active || step == 0)
		return;
	pacelog_add(&hub->pacelog, step, pace.now_ns);
	if (!hub->led)
		keeper_pace(hub->keeper, step, pace.now_ns);
}

/* A profile of this hub is given up: the other one's orders have other numbers. */
void hub_follow(struct hub *hub, bool led)
{
	if (hub->led == led)
		return;
	hub->led = led;
	hub->profile.active = false;
	hub->asked_until_ns = 0;
	hub_reply(hub, EAGAIN, "the hub of another host took over: ask again");
	jobwatch_forget(&hub->watch);
	if (led)
		hub_keep_led(hub);
}

void hub_tick(struct hub *hub, int64_t now_ns)
{
	log_pace(hub);
	if (hub->led)
		return;
	hub_recover(hub, false, now_ns);
	if (hub->profile.active)
		hub_watch_profile(hub, now_ns);
	else if (hub->asked_until_ns > 0)
		start_asked(hub, now_ns);
	else
		hub_decide(hub, now_ns);
	publish_progress(hub);
	watch_cost(hub, now_ns);
	log_change(hub);
	advise(hub, now_ns);
	log_part(hub);
	hub_keep_state(hub, now_ns);
	hublive_say(hub, now_ns);
}

bool hub_idle(const struct hub *hub)
{
	return !hub->profile.active && hub->recovered.windows.cnt == 0 &&
	       !hub_marks_wait(hub, clock_mono_ns());
}

uint64_t hub_epoch(const struct hub *hub)
{
	return hub->epoch;
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
	if (options->restarts > 0)
		hub->number = takennumbers_find(options->out_dir, &hub->earlier_report);
	config.min_gap_ns = options->min_gap_ns;
	config.budget_frac = options->budget_window_frac;
	jobwatch_init(&hub->watch, &config);
	hub->checkup =
		(struct checkup){ .off = options->no_checkup, .recent_cnt = options->recent_cnt };
	overhead_init(&hub->overhead, options);
	r = bus_sub(bus, SUBJECT_STATE, hub_take_state, hub, &hub->subs[0]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_ANSWER, hub_take_answer, hub, &hub->subs[1]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_ASK, take_ask, hub, &hub->subs[2]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_SLICES_COST, take_slices_cost, hub, &hub->subs[3]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_WHERE, take_where, hub, &hub->subs[4]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_OWN, take_own, hub, &hub->subs[5]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_STALLS, take_stalls, hub, &hub->subs[6]);
	if (r == 0)
		r = bus_sub(bus, SUBJECT_RESULT, hub_take_result, hub, &hub->subs[7]);
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
	idmap_done(&hub->places);
	idmap_done(&hub->ranks);
	idmap_done(&hub->profile.places);
	vec_done(&hub->wheres);
	vec_done(&hub->askers);
	vec_done(&hub->profile.answers);
	recovered_done(&hub->recovered);
	overhead_done(&hub->overhead);
	reference_done(&hub->reference);
	doubt_drop(&hub->doubt);
	moment_end(&hub->moment);
	stallnotes_drop(&hub->stallnotes);
	free(hub);
	return NULL;
}
