/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/jobwatch.h"

#include "model/thresholds.h"

#include <math.h>

const struct jobwatch_config jobwatch_default_config = {
	.quorum_frac = JOBWATCH_QUORUM_FRAC,
	.lone_ns = JOBWATCH_LONE_NS,
	.hold_ns = JOBWATCH_HOLD_NS,
	.cost_ns = JOBWATCH_COST_NS,
	.min_gap_ns = JOBWATCH_MIN_GAP_NS,
	.again_ns = JOBWATCH_AGAIN_NS,
	.budget_frac = 0.03,
};

/* A slow worker's iteration may be at its baseline for a moment. */
#define EXCESS_FRAC_MIN 0.01

/* Between windows of one slowdown without a cause; the last one goes on. */
static const int64_t gaps_ns[] = { 20 * NSEC_PER_SEC,  60 * NSEC_PER_SEC,  120 * NSEC_PER_SEC,
				   300 * NSEC_PER_SEC, 900 * NSEC_PER_SEC, 3600 * NSEC_PER_SEC };

void jobwatch_init(struct jobwatch *watch, const struct jobwatch_config *config)
{
	*watch = (struct jobwatch){ .config = *config, .excess_frac = (double)INFINITY };
}

static size_t count_state(const enum detector_state *states, size_t cnt, enum detector_state state)
{
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++)
		found += states[i] == state;
	return found;
}

static void episode_close(struct jobwatch_episode *episode)
{
	episode->open = episode->held = episode->decided = episode->unconfirmed = false;
	episode->agreed_ns = episode->next_ns = 0;
	episode->seen_ns = episode->worse_ns = 0;
	episode->failed = 0;
}

/* What the workers show of slow, or of blocked. */
struct evidence {
	size_t troubled, worker_cnt;
	bool over; /* workers show that there is none */
	int64_t hold_ns;
};

/* Whether enough workers have agreed for long enough. */
static bool episode_holds(struct jobwatch_episode *episode, const struct jobwatch_config *config,
			  const struct evidence *evidence, int64_t now_ns)
{
	double quorum = fmax(1, ceil(config->quorum_frac * (double)evidence->worker_cnt));

	if ((double)evidence->troubled < quorum && now_ns - episode->since_ns < config->lone_ns) {
		episode->agreed_ns = 0;
		return false;
	}
	if (episode->agreed_ns == 0)
		episode->agreed_ns = MAX(now_ns, 1);
	return now_ns - episode->agreed_ns >= evidence->hold_ns;
}

static bool is_too_soon(const struct jobwatch_episode *episode,
			const struct jobwatch_config *config, int64_t now_ns)
{
	return !episode->unconfirmed && now_ns - episode->decided_ns < config->min_gap_ns;
}

/* True when a decision is due. */
static bool episode_update(struct jobwatch_episode *episode, const struct jobwatch_config *config,
			   const struct evidence *evidence, int64_t now_ns)
{
	if (evidence->troubled == 0) {
		episode->agreed_ns = 0;
		if (evidence->over)
			episode_close(episode);
		return false;
	}
	if (!episode->open) {
		episode->open = true;
		episode->since_ns = now_ns;
	}
	if (!episode_holds(episode, config, evidence, now_ns))
		return false;
	episode->held = true;
	if (episode->decided && (episode->next_ns == 0 || now_ns < episode->next_ns))
		return false;
	if (episode->ever && (is_too_soon(episode, config, now_ns) || now_ns < episode->free_ns))
		return false;
	episode->decided = episode->ever = true;
	episode->unconfirmed = false;
	episode->decided_ns = now_ns;
	episode->next_ns = 0;
	return true;
}

/* A slowdown by half has cost a second after two, one by 5 % after twenty. */
static int64_t hold_ns(const struct jobwatch *watch)
{
	return MAX(watch->config.hold_ns,
		   (int64_t)((double)watch->config.cost_ns / watch->excess_frac));
}

enum job_decision jobwatch_update(struct jobwatch *watch, const enum detector_state *states,
				  size_t worker_cnt, int64_t now_ns)
{
	size_t slow = count_state(states, worker_cnt, DETECTOR_SLOW);
	size_t blocked = count_state(states, worker_cnt, DETECTOR_BLOCKED);
	size_t watching = count_state(states, worker_cnt, DETECTOR_WATCHING);
	/* A slow worker that is blocked now has not recovered from being slow. */
	const struct evidence of_slow = { .troubled = watch->slow.open ? slow + blocked : slow,
					  .worker_cnt = worker_cnt,
					  .over = watching > 0,
					  .hold_ns = hold_ns(watch) };
	const struct evidence of_blocked = { .troubled = blocked,
					     .worker_cnt = worker_cnt,
					     .over = true };
	bool slow_due = episode_update(&watch->slow, &watch->config, &of_slow, now_ns);

	if (episode_update(&watch->blocked, &watch->config, &of_blocked, now_ns))
		return JOB_BLOCKED;
	return slow_due ? JOB_SLOW : JOB_NOTHING;
}

/* When the next window is worth its cost: by the budget, or by what the slowdown costs. */
static int64_t free_ns(const struct jobwatch *watch)
{
	double lost_frac =
		isinf(watch->excess_frac) ? 0 : watch->excess_frac / (1 + watch->excess_frac);
	double pays_frac = JOBWATCH_PAYS_FRAC * lost_frac, budget_frac = watch->config.budget_frac;
	double share = pays_frac > budget_frac ? budget_frac / pays_frac : 1;

	return watch->noted_ns + (int64_t)(share * (double)watch->least_gap_ns);
}

void jobwatch_note_pace(struct jobwatch *watch, int64_t iteration_ns, int64_t baseline_ns,
			int64_t now_ns)
{
	struct jobwatch_episode *slow = &watch->slow;

	watch->excess_frac = baseline_ns == 0 ? (double)INFINITY
					      : fmax((double)iteration_ns / (double)baseline_ns - 1,
						     EXCESS_FRAC_MIN);
	slow->free_ns = free_ns(watch);
	if (slow->seen_ns == 0 || (double)iteration_ns < JOBWATCH_WORSE * (double)slow->seen_ns) {
		slow->worse_ns = 0;
		return;
	}
	if (slow->worse_ns == 0)
		slow->worse_ns = MAX(now_ns, 1);
	if (now_ns - slow->worse_ns >= watch->config.hold_ns && slow->next_ns > now_ns) {
		slow->next_ns = now_ns;
		slow->failed = 0;
	}
}

void jobwatch_note_result(struct jobwatch *watch, enum jobwatch_result result, int64_t iteration_ns,
			  int64_t least_gap_ns, int64_t now_ns)
{
	struct jobwatch_episode *slow = &watch->slow;
	int64_t gap_ns = gaps_ns[MIN((size_t)slow->failed, ARRAY_SIZE(gaps_ns) - 1)];

	if (result == JOBWATCH_NO_CAUSE)
		slow->failed++;
	if (result == JOBWATCH_CAUSE)
		gap_ns = watch->config.again_ns;
	if (result == JOBWATCH_UNCONFIRMED)
		gap_ns = JOBWATCH_CONFIRM_NS;
	slow->unconfirmed = result == JOBWATCH_UNCONFIRMED;
	slow->seen_ns = iteration_ns;
	slow->worse_ns = 0;
	watch->noted_ns = now_ns;
	watch->least_gap_ns = least_gap_ns;
	slow->free_ns = free_ns(watch);
	slow->next_ns = now_ns + gap_ns;
}

void jobwatch_forget(struct jobwatch *watch)
{
	episode_close(&watch->slow);
	episode_close(&watch->blocked);
}

bool jobwatch_is_slow(const struct jobwatch *watch)
{
	return watch->slow.held;
}

int64_t jobwatch_slow_ns(const struct jobwatch *watch, int64_t now_ns)
{
	return watch->slow.held ? now_ns - watch->slow.since_ns : 0;
}

unsigned jobwatch_lengthen(const struct jobwatch *watch)
{
	unsigned doublings = MIN(watch->slow.failed, 16u);

	return MIN(1u << doublings, JOBWATCH_LENGTHEN_MAX);
}
