/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One decision for the job from the detectors of its workers. Collectives make
 * all workers equally slow, so a slowdown shows on many of them within an
 * iteration or two: a share of them must agree, or one alone must stay slow
 * for long (replicas that don't wait for each other). They must agree for
 * hold_ns, and until it has cost the job cost_ns: what is over sooner is no slowdown of the job.
 *
 * One slowdown makes one decision, and not before min_gap_ns have passed since
 * the one before. A decision that the gap held back is made when the gap is
 * over, if the job is still slow. The same for blocked, which goes first.
 *
 * While the job stays slow and the window of a decision showed no cause, more
 * decisions follow, later and later, for windows that are longer: a fault that
 * comes now and then needs luck or time. After a window that showed the cause
 * the next decision comes hours later, or when the job has become slower still: that is another
 * fault, or one that had only begun.
 *
 * A slowdown is over when a worker is at its pace and none is slow: workers that
 * learn, are blocked or have ended show nothing.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"
#include "detect/detector.h"

struct jobwatch_config {
	double quorum_frac; /* share of the workers that must agree */
	int64_t lone_ns;    /* fewer workers count once the first was slow for so long */
	int64_t hold_ns;    /* of slow workers, before the job is slow */
	int64_t cost_ns;    /* lost by the job before it is slow */
	int64_t min_gap_ns; /* between two decisions of one kind */
	int64_t again_ns;   /* between two windows of one slowdown whose cause is known */
	double budget_frac; /* of time that windows may cost; 0: no limit */
};

extern const struct jobwatch_config jobwatch_default_config;

enum job_decision { JOB_NOTHING, JOB_SLOW, JOB_BLOCKED };

/* Since when the job is slow (or blocked), and the time of the last decision on it. */
struct jobwatch_episode {
	int64_t since_ns;
	int64_t agreed_ns; /* since when enough workers agree; 0: they do not */
	int64_t decided_ns;
	int64_t next_ns; /* decided: the next decision is due then; 0: not known yet */
	int64_t free_ns; /* the overhead of windows allows no decision before, in this episode or not */
	int64_t seen_ns;  /* the iteration that the latest window showed; 0: none */
	int64_t worse_ns; /* since when it is longer by JOBWATCH_WORSE; 0: it is not */
	unsigned failed;  /* windows that showed no cause */
	bool open, held, decided, ever;
	bool unconfirmed; /* the next decision is the second one of the same trouble */
};

/* What the window of a slow decision showed. */
enum jobwatch_result {
	JOBWATCH_CAUSE,
	JOBWATCH_NO_CAUSE,
	JOBWATCH_NO_WINDOW,
	JOBWATCH_UNCONFIRMED, /* a cause that a second window, soon, has to show too */
};

struct jobwatch {
	struct jobwatch_config config;
	double excess_frac;		/* of the iteration over its baseline; INFINITY: unknown */
	int64_t noted_ns, least_gap_ns; /* of the latest jobwatch_note_result() */
	struct jobwatch_episode slow, blocked;
};

void jobwatch_init(struct jobwatch *watch, const struct jobwatch_config *config);

/*
 * states[worker_cnt]: of all workers now, in any order. Call it after events
 * and at ticks. O(worker_cnt).
 */
enum job_decision jobwatch_update(struct jobwatch *watch, const enum detector_state *states,
				  size_t worker_cnt, int64_t now_ns);

/*
 * The window of the latest slow decision has ended. iteration_ns: the longer of what it showed and
 * what it was ordered for; 0: unknown. least_gap_ns: until the next one, so that windows stay
 * within the budget of overhead. A slowdown that costs more than the budget makes it shorter:
 * JOBWATCH_PAYS_FRAC.
 */
void jobwatch_note_result(struct jobwatch *watch, enum jobwatch_result result, int64_t iteration_ns,
			  int64_t least_gap_ns, int64_t now_ns);

/* The job's iteration now and its baseline (0: unknown); call it before jobwatch_update(). */
void jobwatch_note_pace(struct jobwatch *watch, int64_t iteration_ns, int64_t baseline_ns,
			int64_t now_ns);

/* The workers have been started again: what the earlier ones showed says nothing of these. */
void jobwatch_forget(struct jobwatch *watch);

/* Whether the job is slow: enough workers have been for hold_ns, and the slowdown isn't over. */
bool jobwatch_is_slow(const struct jobwatch *watch);

/* Since when it is, in ns before now_ns; 0: it is not. */
int64_t jobwatch_slow_ns(const struct jobwatch *watch, int64_t now_ns);

/* The length of the next window, in usual ones: 1, 2 or JOBWATCH_LENGTHEN_MAX. */
unsigned jobwatch_lengthen(const struct jobwatch *watch);
