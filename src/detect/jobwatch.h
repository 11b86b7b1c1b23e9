/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decision for the job from the detectors of its workers. Collectives make
 * all workers equally slow, so a slowdown shows on many of them within an
 * iteration or two: a share of them must agree, or one alone must stay slow
 * for long (replicas that don't wait for each other).
 *
 * One slowdown makes one decision: the next comes only after no worker was
 * slow any more, and not before min_gap_ns have passed. A decision that the
 * gap held back is made when the gap is over, if the job is still slow. The
 * same for blocked, which goes first.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"
#include "detect/detector.h"

struct jobwatch_config {
	double quorum_frac; /* share of the workers that must agree */
	int64_t lone_ns;    /* fewer workers count once the first was slow for so long */
	int64_t min_gap_ns; /* between two decisions of one kind */
};

extern const struct jobwatch_config jobwatch_default_config;

enum job_decision { JOB_NOTHING, JOB_SLOW, JOB_BLOCKED };

/* Since when the job is slow (or blocked), and the time of the last decision on it. */
struct jobwatch_episode {
	int64_t since_ns;
	int64_t decided_ns;
	bool open, decided, ever;
};

struct jobwatch {
	struct jobwatch_config config;
	struct jobwatch_episode slow, blocked;
};

void jobwatch_init(struct jobwatch *watch, const struct jobwatch_config *config);

/*
 * states[worker_cnt]: of all workers now, in any order. Call it after events
 * and at ticks. O(worker_cnt).
 */
enum job_decision jobwatch_update(struct jobwatch *watch, const enum detector_state *states,
				  size_t worker_cnt, int64_t now_ns);
