/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/aboutjob.h"

#include "base/clock.h"
#include "base/str.h"
#include "live/hostd/hostd_parts.h"
#include "live/hub/jobstate.h"
#include "live/overhead/costtext.h"
#include "model/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATUS_LINES 64u /* of one answer */

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

typedef VEC(struct wire_state) state_vec;

static size_t count_hosts(const state_vec *states)
{
	size_t ret = 0;

	for (size_t i = 0; i < states->cnt; i++) {
		bool seen = false;

		for (size_t k = 0; k < i && !seen; k++)
			seen = strcmp(states->data[k].host, states->data[i].host) == 0;
		ret += !seen;
	}
	return ret;
}

/* State and pace of the job. Without memory nothing is said of them. */
static void say_state(struct client *asker)
{
	state_vec states = { 0 };
	struct jobstate_pace pace;
	int error = 0;

	vec_foreach(client, &asker->hostd->clients) {
		struct wire_state state;

		if (!(*client)->is_worker || error < 0)
			continue;
		worker_state(&(*client)->worker, clock_mono_ns(), &state);
		error = vec_push(&states, state);
	}
	vec_foreach(other, &asker->hostd->about.others.states) {
		if (error == 0)
			error = vec_push(&states, *other);
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
	if (error == 0 && asker->hostd->about.others.states.cnt > 0)
		say(asker, "hosts=%zu", count_hosts(&states));
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
	if (about->spools.waiting > 0)
		say(asker, "kept=%" PRIu64, about->spools.waiting);
	if (about->spools.dropped > 0)
		say(asker, "dropped=%" PRIu64, about->spools.dropped);
	if (about->reported) {
		say(asker, "verdict=%s", verdict_name((enum verdict)about->report.verdict));
		say(asker, "reason=%s", about->report.reason);
		say(asker, "report=%s/report-%" PRIu64 ".html", options->out_dir,
		    about->report.number);
	}
	say(asker, "%s", "");
}

/* The last datagram has pid 0; its text is PerfTracker's own cost, its step where the list goes on. */
static void end_status(struct client *asker, uint64_t next)
{
	const struct hostd *hostd = asker->hostd;
	struct message last = { .status = 0, .step = next };
	struct report_overhead overhead;
	struct str text = { 0 };

	costtext_of(&hostd->overhead, &hostd->own.cpu, false, &overhead);
	costtext_write(&overhead, &text);
	(void)snprintf(last.text, sizeof(last.text), "%s", str_borrow(&text));
	str_done(&text);
	(void)hostd_reply(asker, &last);
}

static int reply_state(struct client *asker, const struct wire_state *state)
{
	struct message line = { .pid = state->pid,
				.tid = state->tid,
				.rank = state->rank,
				.world_size = state->world_size,
				.status = (int32_t)state->phase,
				.order_id = state->iterations,
				.step = state->step,
				.window_ns = (uint64_t)state->iteration_ns,
				.stall_ns = (uint64_t)state->baseline_ns,
				.mono_ns = state->last_ns };

	(void)snprintf(line.text, sizeof(line.text),
		       "%c lost=%" PRIu64 " slow_since=%" PRIu64 " best_ns=%" PRId64
		       " learned=%" PRIu64 " host=%.63s iteration=%s",
		       state->process, state->lost, state->slow_since_step, state->best_ns,
		       state->learned_step, state->host, state->sequence);
	return hostd_reply(asker, &line);
}

void hostd_answer_status(struct client *asker, uint64_t from)
{
	struct hostd *hostd = asker->hostd;
	uint64_t at = 0, end = from + STATUS_LINES;

	vec_foreach(client, &hostd->clients) {
		struct wire_state state;

		if (!(*client)->is_worker || at++ < from || at > end)
			continue;
		worker_state(&(*client)->worker, clock_mono_ns(), &state);
		if (reply_state(asker, &state) < 0)
			return; /* its socket is full: the client notices that the last one is missing */
	}
	vec_foreach(state, &hostd->about.others.states) {
		if (at++ < from || at > end)
			continue;
		if (reply_state(asker, state) < 0)
			return;
	}
	end_status(asker, at > end ? end : 0);
}
