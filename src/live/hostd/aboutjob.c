/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/aboutjob.h"

#include "base/clock.h"
#include "live/hostd/hostd_parts.h"
#include "live/hub/jobstate.h"
#include "model/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void say(struct client *asker, const char *fmt, ...) _printf_(2, 3);

static void say(struct client *asker, const char *fmt, ...)
{
	struct message line = { .status = 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line.text, sizeof(line.text), fmt, ap);
	va_end(ap);
	(void)hostd_reply(asker, &line);
}

/* State and pace of the job. Without memory nothing is said of them. */
static void say_state(struct client *asker)
{
	VEC(struct wire_state) states = { 0 };
	struct jobstate_pace pace;
	int error = 0;

	vec_foreach(client, &asker->hostd->clients) {
		struct wire_state state;

		if (!(*client)->is_worker || error < 0)
			continue;
		worker_state(&(*client)->worker, clock_mono_ns(), &state);
		error = vec_push(&states, state);
	}
	jobstate_pace(states.data, states.cnt, &pace);
	if (error == 0) {
		say(asker, "state=%s", jobstate_word(states.data, states.cnt, false));
		say(asker, "workers=%zu", jobstate_living(states.data, states.cnt));
		say(asker, "step=%" PRIu64, jobstate_step(states.data, states.cnt));
		say(asker, "slow_since=%" PRIu64, pace.slow_since_step);
		say(asker, "now_ns=%" PRId64, pace.now_ns);
		say(asker, "best_ns=%" PRId64, pace.best_ns);
	}
	vec_done(&states);
}

void hostd_answer_job(struct client *asker)
{
	const struct hostd *hostd = asker->hostd;
	const struct about_job *about = &hostd->about;
	const struct run_options *options = hostd->setup.options;

	say(asker, "name=%s", options->job_name != NULL ? options->job_name : "");
	say(asker, "pid=%" PRIu32, about->supervisor_pid);
	say(asker, "dir=%s", options->out_dir);
	say(asker, "started_ns=%" PRId64, about->started_wall_ns);
	say(asker, "restarts=%" PRIu32, about->restarts);
	say_state(asker);
	if (about->reported) {
		say(asker, "verdict=%s", verdict_name((enum verdict)about->report.verdict));
		say(asker, "reason=%s", about->report.reason);
		say(asker, "report=%s/report-%" PRIu64 ".html", options->out_dir,
		    about->report.number);
	}
	say(asker, "%s", "");
}
