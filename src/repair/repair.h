/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two reports of one job, before and after a change: did the repair bring what a finding promised?
 * The finding must be gone, and its milliseconds must have come back beyond what two runs differ
 * by chance. Where the reports cannot tell, the verdict is undecided and says why: another job,
 * too few iterations, ranks or sources that are missing.
 * Source: docs/verify-fix.md.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#include <jansson.h>

/* Two runs of a job differ by so much of an iteration without a cause. */
#define REPAIR_NOISE_FRAC 0.02
/* Of what was promised: when less came back, for sure, a part did; or nothing worth the name. */
#define REPAIR_KEPT_FRAC 0.9
#define REPAIR_HALF_FRAC 0.5
/* A gain that is smaller, or larger, by this factor is not the same. */
#define REPAIR_SMALLER_FACTOR 0.7
#define REPAIR_LARGER_FACTOR 1.3
/* Of the device's time: less in functions of the same name is another job. */
#define REPAIR_COMMON_FRAC 0.5
/* Work of the devices beyond this factor is other work: another batch, another model. */
#define REPAIR_WORK_FACTOR 1.5
/* In each window, to tell a difference from chance. */
#define REPAIR_ITERATIONS_MIN 3
#define REPAIR_REASON_BYTES 300

enum repair_verdict {
	REPAIR_FIXED,	  /* the finding is gone, and the time came back */
	REPAIR_PARTLY,	  /* the finding is smaller, or gone with a part of its time */
	REPAIR_NO_GAIN,	  /* the finding is gone, but the time did not come back */
	REPAIR_NOT_FIXED, /* the finding is still there, or accuses other ranks now */
	REPAIR_UNDECIDED,
};

enum repair_state {
	REPAIR_GONE,
	REPAIR_SMALLER,
	REPAIR_STILL,
	REPAIR_LARGER,
	REPAIR_MOVED,  /* the same cause and function on other ranks */
	REPAIR_UNSEEN, /* not listed after, but the report after could not have shown it */
};

/* A finding before, and what became of it. Objects are borrowed from the reports. */
struct repair_finding {
	const json_t *before, *after; /* after NULL: none matches */
	enum repair_state state;
};

struct repair_side {
	const char *name; /* the user's, borrowed */
	const json_t *root;
	double iteration_ms; /* NAN: none ended */
	size_t iteration_cnt;
};

struct repair {
	struct repair_side before, after;
	enum repair_verdict verdict;
	char reason[REPAIR_REASON_BYTES]; /* one sentence, without names of the job */
	VEC(struct repair_finding) findings;
	size_t judged;	    /* the finding that the verdict is about */
	double promised_ms; /* its gain; NAN: none */
	bool is_bound;	    /* the promise is at most that */
	double returned_ms; /* of an iteration; NAN: not known */
	double chance_ms;   /* by which both runs may differ by chance, 95 %; NAN: not known */
	VEC(const json_t *) appeared; /* findings after that none before matches */
};

/*
 * before and after: reports as JSON, borrowed by ret. finding: "F1" or an id such as "PT-103"; NULL:
 * the first. Returns 0; -EINVAL with a line in err for what is no report or no finding of it;
 * -ENOMEM. The caller ends with repair_done() in either case.
 */
_must_check_ int repair_judge(const struct repair_side *before, const struct repair_side *after,
			      const char *finding, struct repair *ret, struct err *err);
void repair_done(struct repair *repair);

const char *repair_verdict_name(enum repair_verdict verdict);
const char *repair_state_name(enum repair_state state);

/* Append it as text, and as the document perftracker.repair.v1. Return 0 or -ENOMEM. */
_must_check_ int repair_text(const struct repair *repair, struct str *out);
_must_check_ int repair_json(const struct repair *repair, struct str *out);
