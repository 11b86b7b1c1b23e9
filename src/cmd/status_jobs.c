/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/status_jobs.h"

#include "base/clock.h"
#include "cmd/storechoice.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *or_dash(const char *text)
{
	return text[0] != '\0' ? text : "-";
}

/* "watching", "slow since step 650" */
static void put_state(const struct job_about *about, char ret[static 64])
{
	if (about->slow_since_step == 0)
		(void)snprintf(ret, 64, "%s", or_dash(about->state));
	else
		(void)snprintf(ret, 64, "%s since step %" PRIu64,
			       strcmp(about->state, "watching") == 0 ? "slow" : about->state,
			       about->slow_since_step);
}

void status_jobs_table(const job_about_vec *jobs, FILE *out)
{
	(void)fprintf(out, "%-20s %8s %8s %-20s %5s %9s %9s %9s  %-13s %s\n", "job", "process",
		      "runs for", "state", "ranks", "step", "now ms", "best ms", "last report",
		      "folder");
	vec_foreach(about, jobs) {
		char age[16], state[64];

		jobwords_span(clock_wall_ns() - about->started_wall_ns, age);
		put_state(about, state);
		(void)fprintf(out,
			      "%-20s %8" PRIu32 " %8s %-20s %5" PRIu64 " %9" PRIu64
			      " %9.1f %9.1f  %-13s %s\n",
			      or_dash(about->name), about->pid, age, state, about->workers,
			      about->step, (double)about->now_ns / NSEC_PER_MSEC,
			      (double)about->best_ns / NSEC_PER_MSEC, or_dash(about->verdict),
			      about->dir);
	}
}

/* Of a fleet's job: where results are. */
static void put_spools(const struct job_about *about, FILE *out)
{
	if (about->kept > 0)
		(void)fprintf(out,
			      "results of windows that hosts keep until the hub has them in its "
			      "store: %" PRIu64 "\n",
			      about->kept);
	if (about->dropped > 0)
		(void)fprintf(
			out,
			"results that hosts dropped, as hostd.spool_bytes was reached: %" PRIu64
			"\n",
			about->dropped);
}

void status_fleet_table(const job_about_vec *jobs, FILE *out)
{
	(void)fprintf(out, "%-28s %8s %-20s %5s %5s %9s %9s %9s  %-12s %s\n", "job", "runs for",
		      "state", "hosts", "ranks", "step", "now ms", "best ms", "last report",
		      "reason");
	vec_foreach(about, jobs) {
		char age[16], state[64];

		jobwords_span(clock_wall_ns() - about->started_wall_ns, age);
		put_state(about, state);
		(void)fprintf(out,
			      "%-28s %8s %-20s %5" PRIu64 " %5" PRIu64 " %9" PRIu64
			      " %9.1f %9.1f  %-12s %s\n",
			      or_dash(about->name), age, state, about->hosts, about->workers,
			      about->step, (double)about->now_ns / NSEC_PER_MSEC,
			      (double)about->best_ns / NSEC_PER_MSEC, or_dash(about->verdict),
			      or_dash(about->reason));
	}
	vec_foreach(about, jobs) {
		if (about->kept + about->dropped == 0)
			continue;
		(void)fprintf(out, "%s:\n", or_dash(about->name));
		put_spools(about, out);
	}
}

void status_job_lines(const struct job_about *about, FILE *out)
{
	char age[16];

	jobwords_span(clock_wall_ns() - about->started_wall_ns, age);
	(void)fprintf(out, "job %s, process %" PRIu32 ", runs for %s; results in %s\n",
		      or_dash(about->name), about->pid, age, about->dir);
	if (about->restarts > 0)
		(void)fprintf(out, "restarted after a failure: %" PRIu64 " time%s\n",
			      about->restarts, plural((double)about->restarts));
	put_spools(about, out);
	if (about->verdict[0] != '\0')
		(void)fprintf(out, "last report: %s: %s\n             %s\n", about->verdict,
			      about->reason, about->report);
}

/* "": unknown. */
static void put_text(struct json_writer *w, json_t *job, const char *key, const char *text)
{
	jsonwriter_put_text(w, job, key, text[0] != '\0' ? text : NULL);
}

static json_t *job_object(struct json_writer *w, const struct job_about *about)
{
	json_t *job = json_object();
	char start[32];

	jobwords_iso(about->started_wall_ns, start);
	put_text(w, job, "name", about->name);
	jsonwriter_put(w, job, "pid", json_integer(about->pid));
	put_text(w, job, "started", start);
	put_text(w, job, "folder", about->dir);
	put_text(w, job, "socket", about->socket);
	put_text(w, job, "state", about->state);
	jsonwriter_put(w, job, "workers", json_integer((json_int_t)about->workers));
	if (about->hosts > 0)
		jsonwriter_put(w, job, "hosts", json_integer((json_int_t)about->hosts));
	jsonwriter_put(w, job, "results_kept", json_integer((json_int_t)about->kept));
	jsonwriter_put(w, job, "results_dropped", json_integer((json_int_t)about->dropped));
	jsonwriter_put(w, job, "step", json_integer((json_int_t)about->step));
	jsonwriter_put(w, job, "slow_since_step", json_integer((json_int_t)about->slow_since_step));
	jsonwriter_put(w, job, "restarts", json_integer((json_int_t)about->restarts));
	jsonwriter_put(w, job, "iteration_ms",
		       jsonwriter_number((double)about->now_ns / NSEC_PER_MSEC));
	jsonwriter_put(w, job, "best_ms",
		       jsonwriter_number((double)about->best_ns / NSEC_PER_MSEC));
	put_text(w, job, "verdict", about->verdict);
	put_text(w, job, "reason", about->verdict[0] != '\0' ? about->reason : "");
	put_text(w, job, "report", about->report);
	return job;
}

int status_jobs_json(const job_about_vec *jobs, FILE *out)
{
	struct json_writer w = { 0 };
	json_t *list = json_array();
	int ret;

	vec_foreach(about, jobs)
		jsonwriter_push(&w, list, job_object(&w, about));
	ret = w.error < 0 ? w.error : json_dumpf(list, out, JSON_COMPACT) != 0 ? -EIO : 0;
	json_decref(list);
	return ret;
}
