/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Slower than last time": the pace of a run against that of earlier runs of the same name in the
 * store. Only runs of the same command, number of ranks and kind of machine count, that had the
 * machine for themselves and no finding. A run is called slower when its pace is beyond what one
 * more run like them would show once in a thousand times, and by no less than EARLIER_FACTOR; with
 * fewer than three such runs it is not called anything. What the command line does not say, such
 * as a batch size in a file, is not seen: the answer says so.
 * Source: prediction interval of a normal distribution, on logarithms of the runs' medians.
 */
#pragma once

#include "base/str.h"
#include "memory/runpace.h"
#include "store/storelist.h"

#define EARLIER_RUNS_MAX 40u /* the newest of that name are looked at */
#define EARLIER_USED_MAX 20u /* and of those that fit, the newest */
#define EARLIER_RUNS_MIN 3u
#define EARLIER_AGAIN 5u /* so many slower runs in a row are the usual pace from then on */
#define EARLIER_FACTOR 1.15
#define EARLIER_SPREAD_MIN 0.01 /* of a pace between runs: clocks and rows are no finer */
#define EARLIER_ITERATIONS_MIN 30u
/* A job whose daemon has said nothing for so long is over. */
#define EARLIER_LOST_NS (60 * NSEC_PER_SEC)
/* Machines are compared by this event of a job; EARLIER_MACHINE_UNKNOWN is like no other one. */
#define EARLIER_MACHINE_EVENT "machine"
#define EARLIER_MACHINE_UNKNOWN "unknown"
/* Of a job that was called slower than its earlier runs. */
#define EARLIER_SLOWER_EVENT "slower"

/* Why an earlier run does not count: the first that applies. */
enum earlier_why {
	EARLIER_FITS,
	EARLIER_RUNNING, /* at the same time as this one */
	EARLIER_COMMAND,
	EARLIER_WORKERS,
	EARLIER_MACHINE,
	EARLIER_SHORT,
	EARLIER_SICK,	 /* it had a finding, or was slow or stuck */
	EARLIER_BESIDE,	 /* another job was on its machine */
	EARLIER_FLAGGED, /* it was slower than its own earlier runs */
	EARLIER_WHY_CNT
};

struct earlier_run {
	char key[STORE_KEY_BYTES];
	int64_t started_ns;
	uint32_t workers;
	enum earlier_why why;	/* but for EARLIER_WORKERS */
	bool healthy, abnormal; /* its latest verdict */
	size_t window_cnt;	/* with fingerprints */
	struct runpace_sum pace;
};

struct earlier {
	VEC(struct earlier_run) runs; /* the newest first */
};

/* The run that is compared. Texts are borrowed. */
struct earlier_subject {
	const char *key, *name, *command, *host, *machine; /* NULL: unknown */
	int64_t started_ns, now_ns;
};

/* The caller ends with earlier_done() in either case. Returns 0 or -errno with a line in err. */
_must_check_ int earlier_read(struct store *store, const struct earlier_subject *subject,
			      struct earlier *ret, struct err *err);
void earlier_done(struct earlier *earlier);

/* Jobs on that host in that time, but for this one. */
_must_check_ int earlier_count_beside(struct store *store, const char *host, const char *key,
				      int64_t from_ns, int64_t until_ns, size_t *ret,
				      struct err *err);

/* The pace of a job that the store has, and its machine ("" unknown). */
_must_check_ int earlier_read_pace(struct store *store, const struct store_job *job,
				   struct runpace_sum *ret, char ret_machine[static 256],
				   bool *ret_flagged, struct err *err);

enum earlier_verdict {
	EARLIER_NONE,	 /* no earlier run */
	EARLIER_UNKNOWN, /* not comparable, or too few that are */
	EARLIER_ALIKE,
	EARLIER_SLOWER,
	EARLIER_FASTER,
	EARLIER_VERDICT_CNT
};

struct earlier_answer {
	enum earlier_verdict verdict;
	size_t run_cnt, used_cnt;
	size_t whys[EARLIER_WHY_CNT];
	struct runpace_sum pace;	     /* of this run */
	double median_ns, least_ns, most_ns; /* of the used runs' medians */
	double factor;			     /* this run's pace to theirs; 0: unknown */
	int64_t since_ns;		     /* begin of the oldest one used */
	char like
		[STORE_KEY_BYTES]; /* the run nearest to their median, of those with fingerprints, if
				     * any; "" none */
	bool beside;		   /* another job was on the machine */
};

/* pace: of the run itself; beside: other jobs on its machine. */
void earlier_judge(const struct earlier *earlier, uint32_t workers, const struct runpace_sum *pace,
		   bool beside, struct earlier_answer *ret);

const char *earlier_verdict_name(enum earlier_verdict verdict);
/* "command", "workers": what differs. */
const char *earlier_why_name(enum earlier_why why);

/* "2.0x slower than 5 earlier runs of this name: 40.1 ms an iteration, 20.0 ms (19.5 to 20.7) then" */
void earlier_append_clause(const struct earlier_answer *answer, struct str *out);

/* Why nothing is said: "2 had another command, 1 ran at the same time"; "" when all fit. */
void earlier_append_whys(const struct earlier_answer *answer, struct str *out);
