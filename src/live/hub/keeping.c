/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/keeping.h"

#include "base/clock.h"
#include "live/hub/hub_parts.h"

#include <inttypes.h>

#define KEEP_NS NSEC_PER_SEC

/* A member that is not the first finds it within this time, as a rule; then that one keeps the job. */
#define ALONE_NS (60 * NSEC_PER_SEC)

void hub_keep(struct hub *hub, struct keeper *keeper)
{
	hub->keeper = keeper;
}

void hub_call(struct hub *hub, struct webhook *webhook)
{
	hub->webhook = webhook;
}

static struct keeper_state state_of(const struct hub *hub)
{
	const struct wire_state *states = hub->workers.data;
	struct jobstate_pace pace;

	jobstate_pace(states, hub->workers.cnt, &pace);
	return (struct keeper_state){
		.state = jobstate_word(states, hub->workers.cnt, hub->profile.active),
		.verdict = hub->last.present ? verdict_name(hub->last.verdict) : NULL,
		.reason = hub->last.present ? hub->last.reason : NULL,
		.workers = (uint32_t)hub->workers.cnt,
		.restarts = hub->lives.restarts,
		/* Ranks that have ended no longer say theirs. */
		.step = MAX(jobstate_step(states, hub->workers.cnt), hub->pacelog.last_step),
		.now_ns = pace.now_ns,
		.best_ns = pace.best_ns,
	};
}

void hub_show(struct hub *hub, const struct hub_show *show)
{
	hub->show = *show;
}

void hub_show_state(struct hub *hub)
{
	struct keeper_state state = state_of(hub);

	keeper_state(hub->show.page, &state);
}

void hub_keep_state(struct hub *hub, int64_t now_ns)
{
	struct keeper_state state;

	if (hub->keeper == NULL || now_ns < hub->keep_ns || hub->workers.cnt == 0)
		return;
	if (hub->options->member.index > 0 && now_ns - hub->first_tick_ns < ALONE_NS)
		return;
	hub->keep_ns = now_ns + KEEP_NS;
	state = state_of(hub);
	keeper_state(hub->keeper, &state);
}

void hub_keep_end(struct hub *hub, const struct job_end *end)
{
	struct keeper_state state = state_of(hub);

	state.state = "ended";
	state.ended = true;
	state.exit_status = end->exit_status;
	state.signal = end->signal;
	keeper_state(hub->keeper, &state);
	keeper_event(hub->keeper, "end", "exit status %d%s at step %" PRIu64, end->exit_status,
		     end->asked_signal != 0 ? ", asked to end" : "", state.step);
}

void hub_keep_led(struct hub *hub)
{
	struct keeper_state state = state_of(hub);

	if (hub->keep_ns == 0)
		return; /* nothing was kept */
	state.state = "joined";
	state.ended = true;
	keeper_state(hub->keeper, &state);
	keeper_event(hub->keeper, "joined", "the first host keeps the job from here on");
}

void hub_keep_window(struct hub *hub)
{
	vec_foreach(answer, &hub->profile.answers) {
		if (answer->state == ANSWER_READY)
			keeper_fingerprint(hub->keeper, hub->profile.id, answer->rank,
					   answer->text);
	}
}
