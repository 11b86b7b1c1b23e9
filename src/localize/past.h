/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's own past: the fingerprints of a healthy window beside those of now, matched by rank
 * and by the key of frames. It answers "how much more does worker w spend below f than before",
 * which needs no peer: in jobs of one process, in jobs whose ranks differ by design, and where
 * all ranks became slow alike.
 */
#pragma once

#include "localize/job.h"

/* Of one worker, by frame of the job of now, per iteration, subtrees summed. */
struct past_worker {
	bool known;		/* the past has this rank */
	size_t then;		/* its index in the past */
	double growth_ns;	/* of its iteration */
	double total_now_ns;	/* of all its functions, without collectives */
	double total_before_ns; /* the same in the past */
	double alike_frac;	/* of total_before_ns: functions that grew about as all together */
	double delay_growth_ns; /* of it: runnable without a CPU */
	double stood_growth_ns; /* of it: neither on a CPU nor runnable; 0 unknown */
	double other_growth_ns; /* CPU time of the busiest other thread, at the same length of an
				 * iteration; 0 unknown */
	double *now_ns;		/* time of its own below the frame: without collectives */
	double *before_ns;	/* the same in the past */
	double *error_ns;	/* standard error of the difference */
};

struct past {
	const struct job *now;
	struct job then;
	struct past_worker *workers; /* by worker of now */
	uint32_t *frame_of;	     /* by frame of now: that of then, FRAME_NONE: new */
	uint32_t *now_of;	     /* by frame of then: that of now or its nearest caller */
	size_t known_cnt;	     /* workers */
};

/*
 * Joins job with fps[cnt], ranks distinct, which outlive ret; no fingerprints: nothing is known.
 * Arrays live in arena. Returns 0 or -ENOMEM; past_done() is fine after either.
 */
_must_check_ int past_init(struct past *ret, const struct job *job,
			   const struct fingerprint *const *fps, size_t cnt, struct arena *arena);
void past_done(struct past *past);

/* How much longer worker w spends below a frame than before; 0 when unknown. */
double past_growth_ns(const struct past *past, size_t w, uint32_t frame);

/* The same if it is so many standard errors beyond the noise of both windows, else 0. */
double past_sure_growth_ns(const struct past *past, size_t w, uint32_t frame, double errors);

/*
 * How many times as long as before worker w takes for what is not below the frame; 1: no longer, or
 * too little is left to tell.
 */
double past_rest_factor(const struct past *past, size_t w, uint32_t frame);

/* Growth of a frame beyond that factor; negative where the rest grew more. */
double past_growth_beyond_ns(const struct past *past, size_t w, uint32_t frame);

/*
 * Where most functions of most workers grew alike, no place in the job's code is to blame: the
 * machine is slower, or iterations have more to do. Returns how many
 * times as long all of them take, the median of the workers; 0: they did not grow alike.
 */
_must_check_ int past_alike_factor(const struct past *past, double *ret);

/* How much longer the frame itself takes, with the built-ins it calls. */
double past_own_growth_ns(const struct past *past, size_t w, uint32_t frame);

/* Median over the workers with a past of what an iteration grew by. Returns 0 or -ENOMEM. */
_must_check_ int past_slowdown(const struct past *past, double *ret_ns);
