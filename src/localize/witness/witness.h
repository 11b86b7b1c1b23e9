/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which workers are accused of which place in the program. Kinds of evidence: blame (which
 * worker came late and why), difference (which worker is unlike its peers), expectation (what
 * is too long everywhere), use (what keeps all GPUs from computing) and the past. Each by_*.c is
 * a way to accuse. cause.c names the cause, compose.c makes a finding.
 * Source: PerfTracker section 4.3; docs/method.md.
 */
#pragma once

#include "localize/distance/differ.h"
#include "localize/distance/expect.h"
#include "localize/flows/flowfacts.h"
#include "localize/groups/groupfacts.h"
#include "localize/late/blame.h"
#include "localize/witness/usesign.h"

enum witness { WITNESS_BLAME, WITNESS_DIFFERENCE, WITNESS_EXPECTATION, WITNESS_PAST, WITNESS_USE };
struct accusation {
	enum witness witness;
	const uint32_t *workers; /* indices, ascending */
	size_t worker_cnt;
	uint32_t frame;	   /* the place: its whole subtree; FRAME_NONE: everything the workers do */
	uint32_t function; /* the function that holds most of it; FRAME_NONE */
	uint8_t class;	   /* class of most of it */
	bool spread;	   /* no one place: the slowdown is everywhere in the subtree */
	bool usual;	   /* no finding: it was so before the slowdown, or there is none */
	double part_of_ns; /* per iteration: the slowdown of which it is less than half; 0: none */
	bool rotates;	   /* no worker always: they take turns */
	size_t place_cnt;  /* unrelated places that something strikes at random; 0: one place */
	const bool *strikes; /* by function of the job: is one of these places; NULL: not known */
	/* Per iteration: what the accused lost there, the part in that function, what repair gives
	 * back to the job, and what of it others who are as late keep from it (gain.h). */
	double own_ns, main_ns, gain_ns, hidden_ns;
	struct group_facts groups;
	struct flow_facts flow;
	bool recalled; /* the job's past is known there: */
	bool unsure;   /* by expectation: by chance, or a library's function without a past */
	bool once;     /* by expectation, without a past: nearly all of it lies in one iteration */
	bool held;     /* everywhere, because another thread holds the GIL */
	double delay_growth_ns;	  /* per iteration: more than then the thread lacked a CPU */
	double before_ns, now_ns; /* per iteration of a typical accused: own time at the place */
	double expectation_distance, differential_distance, threshold;
	struct use_sign use; /* by use; the gain is a bound then */
};

static inline bool accusation_has(const struct accusation *a, uint32_t worker)
{
	size_t low = 0, high = a->worker_cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (a->workers[middle] < worker)
			low = middle + 1;
		else
			high = middle;
	}
	return low < a->worker_cnt && a->workers[low] == worker;
}

struct accuse_options {
	double min_gain_frac; /* of an iteration */
	/* An expectation that all exceed alike is no event: it needs this much to be a finding. */
	double min_common_frac;
	/* Every worker was analyzed. Else an absent one may be late, or waited for. */
	bool all_present;
	/* Live: how much slower the job became, per iteration; 0 when unknown. What is long
	 * everywhere but explains little of it was there before. */
	double slowdown_ns;
	double triggered_ns; /* by how much the job was slower when the window was ordered */
	double baseline_ns;  /* an iteration before the slowdown; 0 unknown */
	bool slow;	     /* the window shows a job that runs slower than at its best */
	bool live; /* it is known how fast the job was: a slowdown of 0 means as fast as ever */
	const struct past *past; /* the job's own (localize/past.h); NULL: unknown */
	struct expect_table expect;
	struct differ_options differ;
};

typedef VEC(struct accusation) accusations;

/* By function: whether a fault strikes there at random, no matter who and where. NULL: none. Borrowed. */
static inline const bool *accusations_strikes(const accusations *list)
{
	vec_foreach(a, list) {
		if (a->strikes != NULL)
			return a->strikes;
	}
	return NULL;
}

/*
 * In the order of their calls. Each appends to out (by_pauses and by_split also change what is
 * there), arrays in arena, and returns 0 or -ENOMEM.
 */
_must_check_ int accuse_by_blame(const struct job *job, const struct blame *blame,
				 const struct accuse_options *options, struct arena *arena,
				 accusations *out);
_must_check_ int accuse_by_pauses(const struct job *job, const struct blame *blame,
				  const struct accuse_options *options, struct arena *arena,
				  accusations *out);
_must_check_ int accuse_by_split(const struct job *job, const struct accuse_options *options,
				 struct arena *arena, accusations *out);
_must_check_ int accuse_by_inputs(const struct job *job, const struct blame *blame,
				  const struct accuse_options *options, struct arena *arena,
				  accusations *out);
_must_check_ int accuse_by_difference(const struct job *job, const struct blame *blame,
				      const struct accuse_options *options, struct arena *arena,
				      accusations *out);
_must_check_ int accuse_by_link(const struct job *job, const struct blame *blame,
				const struct accuse_options *options, struct arena *arena,
				accusations *out);
_must_check_ int accuse_by_gil(const struct job *job, const struct blame *blame,
			       const struct accuse_options *options, struct arena *arena,
			       accusations *out);
_must_check_ int accuse_by_expectation(const struct job *job, const struct blame *blame,
				       const struct accuse_options *options, struct arena *arena,
				       accusations *out);
