/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/jobwatch.h"

#include "model/thresholds.h"

#include <math.h>

const struct jobwatch_config jobwatch_default_config = {
	.quorum_frac = JOBWATCH_QUORUM_FRAC,
	.lone_ns = JOBWATCH_LONE_NS,
	.min_gap_ns = JOBWATCH_MIN_GAP_NS,
};

void jobwatch_init(struct jobwatch *watch, const struct jobwatch_config *config)
{
	*watch = (struct jobwatch){ .config = *config };
}

static size_t count_state(const enum detector_state *states, size_t cnt, enum detector_state state)
{
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++)
		found += states[i] == state;
	return found;
}

/* True when a decision is due: troubled_cnt workers are slow (or blocked). */
static bool episode_update(struct jobwatch_episode *episode, const struct jobwatch_config *config,
			   size_t troubled_cnt, size_t worker_cnt, int64_t now_ns)
{
	double quorum = fmax(1, ceil(config->quorum_frac * (double)worker_cnt));

	if (troubled_cnt == 0) {
		episode->open = episode->decided = false;
		return false;
	}
	if (!episode->open) {
		episode->open = true;
		episode->since_ns = now_ns;
	}
	if (episode->decided)
		return false;
	if ((double)troubled_cnt < quorum && now_ns - episode->since_ns < config->lone_ns)
		return false;
	if (episode->ever && now_ns - episode->decided_ns < config->min_gap_ns)
		return false;
	episode->decided = episode->ever = true;
	episode->decided_ns = now_ns;
	return true;
}

enum job_decision jobwatch_update(struct jobwatch *watch, const enum detector_state *states,
				  size_t worker_cnt, int64_t now_ns)
{
	size_t slow = count_state(states, worker_cnt, DETECTOR_SLOW);
	size_t blocked = count_state(states, worker_cnt, DETECTOR_BLOCKED);
	const struct jobwatch_config *config = &watch->config;
	/* A slow worker that is blocked now has not recovered from being slow. */
	size_t troubled = watch->slow.open ? slow + blocked : slow;
	bool slow_due = episode_update(&watch->slow, config, troubled, worker_cnt, now_ns);

	if (episode_update(&watch->blocked, config, blocked, worker_cnt, now_ns))
		return JOB_BLOCKED;
	return slow_due ? JOB_SLOW : JOB_NOTHING;
}
