/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of a run at its end. It never contradicts the run: healthy is the last of the
 * possibilities, after a failure, also one that a restart has mended, a hang, a slowdown that lasts,
 * ranks that were not seen or not compared, and a run too short to judge. Pure: facts in, report
 * out.
 * Source: docs/findings.md, "Verdicts".
 */
#pragma once

#include "live/ending/lives.h"
#include "live/hub/history.h"
#include "live/link/wire.h"
#include "memory/earlier.h"
#include "model/report.h"

/* What helps a job of which no iteration was seen. */
#define ENDING_ADVICE                                                                          \
	"a loop without torch's DataLoader and optimizers marks its iterations itself: "       \
	"`import perftracker`, and `perftracker.step()` at the end of each (torch before 2.5 " \
	"needs the import in any case)"

/* Least iterations from which a job may be called healthy. */
#define ENDING_ITERATIONS_MIN 30u

/* How the job ended. */
struct job_end {
	int exit_status;  /* -1: unknown, perftracker run itself has ended */
	int signal;	  /* that ended the command; 0: none */
	int asked_signal; /* by which perftracker run was asked to end it; 0: none */
	int64_t asked_ns; /* when */
};

struct ending_facts {
	const struct wire_state *states; /* all workers that ever connected */
	size_t cnt;
	struct job_end end;
	const struct lives *lives;
	const struct history *history;
	int64_t last_mark_ns; /* the latest of all workers before the job was asked to end */
	bool slow;	      /* the job was slow at its end */
	struct jobstate_pace pace;
	const char *unclear;	 /* why the latest check-up has no verdict; "": it has */
	bool uncompared;	 /* no window of the job showed whether a rank is late */
	bool stuck;		 /* no iteration has ended since the last hang report */
	unsigned hangs;		 /* hangs reported, without a finding */
	unsigned slowdowns;	 /* profiled, without a finding */
	unsigned restarts;	 /* of the daemon, while the job ran */
	uint64_t earlier_report; /* then: the latest one of the daemon before; 0: none */
	char orphans[256];	 /* of orphans_append() */
	const struct earlier_answer *earlier; /* its pace to earlier runs; NULL: not known */
};

/*
 * Appends how a slowdown or a hang that a report names went on:
 * "; it lasted until the end at step 900; then ended by SIGINT (Ctrl-C)".
 */
void ending_append_lasting(const struct ending_facts *facts, struct str *out);

/* Returns 0 or -ENOMEM; *ret is to be freed with arena_done(&ret->arena) on success only. */
_must_check_ int ending_report(const struct ending_facts *facts, struct report *ret);
