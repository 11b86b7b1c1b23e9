/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a job gets a check-up: a window without any slowdown. It compares the ranks of a job that
 * is slow from its first step, and keeps what healthy looked like (reference.h). The first one comes
 * when all workers have been at their pace for CHECKUP_STEADY_NS and for two windows of the
 * detector, or after CHECKUP_PATIENCE_NS: ranks of a job without a steady pace can be compared, too,
 * but its window is no past. Another comes after CHECKUP_INTERVAL_NS, or when the job's iteration or
 * its processes have changed. Pure: the hub orders the window.
 *
 * Until then a job that becomes slow would have nothing to be compared with. So a window that is
 * only kept, without a report, is taken as soon as all workers have been at their pace for
 * CHECKUP_EARLY_NS and for one window of the detector; so it is after a person accepted a pace.
 */
#pragma once

#include "live/link/wire.h"

#define CHECKUP_STEADY_NS (20 * NSEC_PER_SEC)
#define CHECKUP_EARLY_NS (4 * NSEC_PER_SEC)
/* From when all workers have a pace. */
#define CHECKUP_PATIENCE_NS (45 * NSEC_PER_SEC)
#define CHECKUP_INTERVAL_NS (4 * 3600 * NSEC_PER_SEC)

/* After the third check-up in a row that failed, and before that of a changed job. From the fourth
 * on it is CHECKUP_INTERVAL_NS: what is unclear stays so, and windows cost. */
#define CHECKUP_RETRY_NS (600 * NSEC_PER_SEC)

/* Between two early windows: a job may change its iteration every few seconds. */
#define CHECKUP_EARLY_GAP_NS (60 * NSEC_PER_SEC)

struct checkup {
	bool off;	     /* --no-checkup */
	uint32_t recent_cnt; /* iterations of a detector's window */
	uint64_t job;	     /* checkup_job() of the steady workers */
	uint64_t done_job;   /* that of the latest check-up; 0: none yet */
	uint64_t early_job;  /* that of the latest early window; 0: none yet */
	bool bare;	     /* a person accepted another pace: the past shows the old one */
	int64_t known_ns;    /* since when all have a pace; 0: they have not */
	int64_t steady_ns;   /* since when all are at their pace; 0: they are not */
	int64_t away_ns;     /* since when some are not; 0: all are */
	int64_t done_ns, early_ns;
	bool done_steady;  /* all were at their pace when the latest was ordered */
	unsigned failures; /* check-ups in a row that gave no report, or no verdict */
	char unclear[300]; /* why the latest has no verdict; "": it has one */
	bool doubted;	   /* what the latest found is to be seen in another window, soon */
};

/* A number for the workers and their iteration: another one when either changes. Never 0. */
uint64_t checkup_job(const struct wire_state *states, size_t cnt);

/* Call it at each tick without a profile. states[cnt]: all workers. */
void checkup_update(struct checkup *checkup, const struct wire_state *states, size_t cnt,
		    int64_t now_ns);

/* How many times as long as usual the next window is: one of more iterations may tell more. */
unsigned checkup_lengthen(const struct checkup *checkup);

/* Whether this job has yet to get its first check-up, and is steady. */
bool checkup_is_near(const struct checkup *checkup);

bool checkup_is_due(const struct checkup *checkup, const struct wire_state *states, size_t cnt,
		    int64_t now_ns);

/* Whether an early window is due: there is no window of the job as it is now. */
bool checkup_is_early_due(const struct checkup *checkup, const struct wire_state *states,
			  size_t cnt, int64_t now_ns);
void checkup_note_early(struct checkup *checkup, int64_t now_ns);

/* The job's past is gone, though neither its iteration nor its processes changed. */
void checkup_note_past_lost(struct checkup *checkup);

/* A check-up was ordered, or could not be. */
void checkup_note_begun(struct checkup *checkup, int64_t now_ns);

/* It gave no report, or one without a verdict (why; else ""): it is repeated, later each time. */
void checkup_note_failed(struct checkup *checkup, const char *why);
void checkup_note_passed(struct checkup *checkup);

/* The processes have ended, and others come: the wait for a steady pace begins again. */
void checkup_forget(struct checkup *checkup);

/* Its finding needs a second window: it is repeated after DOUBT_AGAIN_NS. */
void checkup_note_doubted(struct checkup *checkup, int64_t now_ns);
