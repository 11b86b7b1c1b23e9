/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/earlier.h"

#include "base/clock.h"
#include "memory/samecommand.h"
#include "model/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS (3600 * NSEC_PER_SEC)

/* --- reading --- */

struct reading {
	struct store *store;
	const struct earlier_subject *subject;
	struct earlier *earlier;
	struct err *err;
};

/* What the events of a job say. */
struct told {
	struct runpace pace;
	char machine[256];
	bool flagged, accepted;
};

static int take_event(void *arg, const struct store_event *event)
{
	struct told *told = arg;

	runpace_take_event(&told->pace, event->kind, event->text, event->at_ns / NSEC_PER_SEC);
	if (strcmp(event->kind, EARLIER_MACHINE_EVENT) == 0)
		(void)snprintf(told->machine, sizeof(told->machine), "%s", event->text);
	told->flagged |= strcmp(event->kind, EARLIER_SLOWER_EVENT) == 0;
	told->accepted |= strcmp(event->kind, "accepted") == 0;
	return 0;
}

static int take_pace(void *arg, const struct store_pace *pace)
{
	struct told *told = arg;

	return runpace_add(&told->pace, &(struct runpace_row){ .at_s = pace->at_s,
							       .sum_ns = pace->sum_ns,
							       .step = pace->step,
							       .cnt = pace->cnt });
}

/* Seconds of a short run, minutes or hours of a longer one: the finer ones are soon removed. */
static int read_rows(struct store *store, const struct store_job *job, struct told *told,
		     struct err *err)
{
	static const int tiers_s[] = { 1, 60, 3600 };
	int64_t span_ns = job->seen_ns - job->started_ns;
	size_t first = span_ns <= HOUR_NS ? 0 : span_ns <= 168 * HOUR_NS ? 1 : 2;
	int ret = 0;

	for (size_t i = first; i < ARRAY_SIZE(tiers_s) && ret == 0; i++) {
		told->pace.rows.cnt = 0;
		ret = store_list_pace(store, job->key, tiers_s[i], take_pace, told, err);
		if (told->pace.rows.cnt >= RUNPACE_ROWS_MIN)
			break;
	}
	return ret;
}

int earlier_read_pace(struct store *store, const struct store_job *job, struct runpace_sum *ret,
		      char ret_machine[static 256], bool *ret_flagged, struct err *err)
{
	struct told told = { .machine = "" };
	int r = store_list_events(store, job->key, take_event, &told, err);

	if (r == 0)
		r = read_rows(store, job, &told, err);
	if (r == 0)
		r = runpace_sum(&told.pace, ret);
	runpace_done(&told.pace);
	if (r == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	(void)snprintf(ret_machine, 256, "%s", told.machine);
	*ret_flagged = told.flagged && !told.accepted;
	return r;
}

static bool is_same_machine(const struct earlier_subject *subject, const char *host,
			    const char *machine)
{
	const char *own = subject->machine != NULL ? subject->machine : "";

	if (strcmp(own, EARLIER_MACHINE_UNKNOWN) == 0 ||
	    strcmp(machine, EARLIER_MACHINE_UNKNOWN) == 0)
		return false;
	if (own[0] != '\0' && machine[0] != '\0')
		return strcmp(own, machine) == 0;
	return subject->host != NULL && strcmp(subject->host, host) == 0;
}

static bool has_verdict(const struct store_job *job, const char *verdict)
{
	return job->verdict != NULL && strcmp(job->verdict, verdict) == 0;
}

static bool is_sick(const struct store_job *job)
{
	return has_verdict(job, verdict_name(VERDICT_ABNORMAL)) ||
	       has_verdict(job, verdict_name(VERDICT_SLOW)) ||
	       has_verdict(job, verdict_name(VERDICT_STUCK));
}

static bool is_running(const struct store_job *job, int64_t now_ns)
{
	return job->ended_ns == 0 && now_ns - job->seen_ns < EARLIER_LOST_NS;
}

/* Copies: the texts of a job are gone after its row, in which no other query can run on a server. */
struct candidate {
	struct earlier_run run;
	char *command, *host;
	bool sick, running;
	int64_t seen_ns;
	uint64_t step;
};

typedef VEC(struct candidate) candidate_list;

static int take_job(void *arg, const struct store_job *job)
{
	candidate_list *list = arg;
	struct candidate candidate = {
		.run = { .started_ns = job->started_ns,
			 .workers = job->workers,
			 .healthy = has_verdict(job, verdict_name(VERDICT_HEALTHY)),
			 .abnormal = has_verdict(job, verdict_name(VERDICT_ABNORMAL)) },
		.command = job->command != NULL ? strdup(job->command) : NULL,
		.host = strdup(job->host),
		.sick = is_sick(job),
		.running = job->ended_ns == 0,
		.seen_ns = job->seen_ns,
		.step = job->step,
	};

	(void)snprintf(candidate.run.key, sizeof(candidate.run.key), "%s", job->key);
	if (candidate.host != NULL && (candidate.command != NULL || job->command == NULL) &&
	    vec_push(list, candidate) == 0)
		return 0;
	free(candidate.command);
	free(candidate.host);
	return -ENOMEM;
}

/* Why it does not count, as far as its row says. */
static enum earlier_why look(const struct earlier_subject *subject,
			     const struct candidate *candidate)
{
	const struct store_job job = { .ended_ns = candidate->running ? 0 : 1,
				       .seen_ns = candidate->seen_ns };

	if (is_running(&job, subject->now_ns) || candidate->seen_ns > subject->started_ns)
		return EARLIER_RUNNING;
	return samecommand(subject->command, candidate->command) ? EARLIER_FITS : EARLIER_COMMAND;
}

static int take_window(void *arg, uint64_t number, size_t fingerprint_cnt)
{
	struct earlier_run *run = arg;

	run->window_cnt += number > 0 && fingerprint_cnt > 0;
	return 0;
}

static int look_closer(const struct reading *reading, struct candidate *candidate)
{
	const struct earlier_subject *subject = reading->subject;
	const struct store_job job = { .key = candidate->run.key,
				       .started_ns = candidate->run.started_ns,
				       .seen_ns = candidate->seen_ns };
	struct earlier_run *run = &candidate->run;
	char machine[256];
	size_t beside = 0;
	bool flagged = false;
	int ret = earlier_read_pace(reading->store, &job, &run->pace, machine, &flagged,
				    reading->err);

	if (ret == 0)
		ret = earlier_count_beside(reading->store, candidate->host, run->key,
					   run->started_ns, candidate->seen_ns, &beside,
					   reading->err);
	if (ret == 0)
		ret = store_list_windows(reading->store, run->key, take_window, run, reading->err);
	if (ret < 0)
		return ret;
	if (!is_same_machine(subject, candidate->host, machine))
		run->why = EARLIER_MACHINE;
	else if (!run->pace.known || candidate->step < EARLIER_ITERATIONS_MIN)
		run->why = EARLIER_SHORT;
	else if (candidate->sick)
		run->why = EARLIER_SICK;
	else if (beside > 0)
		run->why = EARLIER_BESIDE;
	else if (flagged)
		run->why = EARLIER_FLAGGED;
	return 0;
}

int earlier_read(struct store *store, const struct earlier_subject *subject, struct earlier *ret,
		 struct err *err)
{
	struct reading reading = { .store = store, .subject = subject, .earlier = ret, .err = err };
	candidate_list list = { 0 };
	int r = store_list_jobs_named(store, subject->name, subject->started_ns, EARLIER_RUNS_MAX,
				      take_job, &list, err);

	vec_foreach(candidate, &list) {
		if (r == 0 && strcmp(candidate->run.key, subject->key) != 0) {
			candidate->run.why = look(subject, candidate);
			if (candidate->run.why == EARLIER_FITS)
				r = look_closer(&reading, candidate);
			if (r == 0)
				r = vec_push(&ret->runs, candidate->run);
		}
		free(candidate->command);
		free(candidate->host);
	}
	vec_done(&list);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

void earlier_done(struct earlier *earlier)
{
	vec_done(&earlier->runs);
}

static int take_one(void *arg, const struct store_job *job)
{
	size_t *cnt = arg;

	(void)job;
	(*cnt)++;
	return 0;
}

int earlier_count_beside(struct store *store, const char *host, const char *key, int64_t from_ns,
			 int64_t until_ns, size_t *ret, struct err *err)
{
	*ret = 0;
	return store_list_jobs_beside(store, host, key, from_ns, until_ns, take_one, ret, err);
}
