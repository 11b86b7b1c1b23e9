/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/jobwords.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define LOST_NS (60 * NSEC_PER_SEC)

static bool is_lost(const struct store_job *job)
{
	return job->ended_ns == 0 && clock_wall_ns() - job->seen_ns > LOST_NS;
}

void jobwords_state(const struct store_job *job, char ret[static 32])
{
	if (is_lost(job))
		(void)snprintf(ret, 32, "lost");
	else if (job->ended_ns == 0)
		(void)snprintf(ret, 32, "%s", job->state);
	else if (job->signal != 0)
		(void)snprintf(ret, 32, "ended by signal %d", job->signal);
	else if (job->exit_status > 0)
		(void)snprintf(ret, 32, "failed (exit %d)", job->exit_status);
	else
		(void)snprintf(ret, 32, "ended");
}

static struct tm utc(int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm ret = { 0 };

	(void)gmtime_r(&seconds, &ret);
	return ret;
}

void jobwords_time(int64_t wall_ns, char ret[static 32])
{
	struct tm tm = utc(wall_ns);

	ret[strftime(ret, 32, "%Y-%m-%d %H:%M:%S", &tm)] = '\0';
}

void jobwords_iso(int64_t wall_ns, char ret[static 32])
{
	struct tm tm = utc(wall_ns);

	ret[strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm)] = '\0';
}

void jobwords_span(int64_t ns, char ret[static 16])
{
	double seconds = (double)ns / NSEC_PER_SEC;

	if (seconds < 120)
		(void)snprintf(ret, 16, "%.0f s", seconds);
	else if (seconds < 7200)
		(void)snprintf(ret, 16, "%.0f min", seconds / 60);
	else
		(void)snprintf(ret, 16, "%.1f h", seconds / 3600);
}

int64_t jobwords_until_ns(const struct store_job *job)
{
	if (job->ended_ns != 0)
		return job->ended_ns;
	return is_lost(job) ? job->seen_ns : clock_wall_ns();
}

void jobwords_put_job(struct json_writer *w, json_t *to, const struct store_job *job)
{
	char started[32], ended[32], state[32];

	jobwords_iso(job->started_ns, started);
	jobwords_iso(job->ended_ns, ended);
	jobwords_state(job, state);
	jsonwriter_put_text(w, to, "job", job->key);
	jsonwriter_put_text(w, to, "name", job->name);
	jsonwriter_put_text(w, to, "host", job->host);
	jsonwriter_put_text(w, to, "owner", job->owner);
	jsonwriter_put_text(w, to, "folder", job->folder);
	jsonwriter_put_text(w, to, "command", job->command);
	jsonwriter_put_text(w, to, "started", started);
	jsonwriter_put_text(w, to, "ended", job->ended_ns != 0 ? ended : NULL);
	jsonwriter_put_text(w, to, "state", state);
	jsonwriter_put(w, to, "exit_status",
		       job->ended_ns != 0 ? json_integer(job->exit_status) : json_null());
	jsonwriter_put(w, to, "workers", json_integer(job->workers));
	jsonwriter_put(w, to, "restarts", json_integer(job->restarts));
	jsonwriter_put(w, to, "step", json_integer((json_int_t)job->step));
	jsonwriter_put(w, to, "iteration_ms",
		       jsonwriter_number((double)job->now_ns / NSEC_PER_MSEC));
	jsonwriter_put(w, to, "best_ms", jsonwriter_number((double)job->best_ns / NSEC_PER_MSEC));
	jsonwriter_put(w, to, "not_kept", json_integer((json_int_t)job->lost));
	jsonwriter_put_text(w, to, "verdict", job->verdict);
	jsonwriter_put_text(w, to, "reason", job->reason);
}
