/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the hub, shared by its files. */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "detect/jobwatch.h"
#include "live/ending/ending.h"
#include "live/hub/checkup.h"
#include "live/hub/doubt.h"
#include "live/hub/history.h"
#include "live/hub/hub.h"
#include "live/hub/jobprofile.h"
#include "live/hub/jobstate.h"
#include "live/hub/reference.h"
#include "live/link/wire_hang.h"
#include "live/link/wire_request.h"
#include "live/overhead/overhead.h"
#include "live/pace/pacelog.h"
#include "live/recovery/recovered.h"
#include "live/stallnotes/stallnotes.h"
#include "live/ui/carpet.h"
#include "model/report.h"

/* What the last line of a run and `perftracker status` say of the latest report. */
struct last_report {
	bool present;
	enum verdict verdict;
	int64_t slow_since_step; /* as of its window; 0: not slow, or no window */
	char reason[400], path[4200];
};

struct hub {
	struct bus *bus;
	const struct run_options *options;
	struct bus_sub *subs[8];
	VEC(struct wire_state) workers; /* one that ended stays until its rank connects again */
	struct idmap places, ranks;	/* of them, by their id and by their rank */
	VEC(struct wire_where) wheres;	/* of the latest hang, by worker */
	VEC(uint64_t) askers;		/* clients of hostd that wait for a report */
	int64_t asked_window_ns, asked_until_ns; /* a request that has not begun; until 0: none */
	char asked_why[8 * WIRE_ASK_WHY]; /* who asked, and why, all of them; "": not known */
	struct jobwatch watch;
	struct overhead overhead;
	struct own_cpu own; /* of this host's threads; the latest from hostd */
	struct profile profile;
	struct checkup checkup;
	struct doubt doubt;
	struct moment moment;
	struct stallnotes stallnotes;
	struct reference reference;
	struct jobstate_pace slowdown; /* as last logged; slow_since_step 0: none */
	bool accepted;		       /* a person has accepted that slowdown */
	uint64_t epoch, sequence;      /* of struct wire_profile */
	uint64_t earlier_report;       /* of a daemon before this one; 0: none */
	uint64_t number; /* of the latest report or profile; in file names and the order's id */
	unsigned quiet_slowdowns, quiet_hangs; /* profiled or reported, without a finding */
	bool found, compared; /* at least one report was abnormal, or showed all ranks to be well */
	struct lives lives;
	struct history history;
	struct pacelog pacelog;
	uint32_t arrivals;    /* of workers */
	bool led, ending;     /* by the hub of another host; the job was asked to end */
	int64_t last_mark_ns; /* of all workers, until then */
	uint64_t hang_step,
		pause_step;	      /* after the latest hang report; pause logged, + 1; 0: none */
	int64_t hang_ns, hang_due_ns; /* of that report; the next one waits so long for stacks; 0 */
	char shown[64];		      /* the job's state as last logged */
	bool advised, part_logged, twice_logged; /* lines that are said once */
	struct last_report last;
	struct recovered recovered;	/* windows of an earlier hub */
	unsigned marks;			/* windows that the store does not have yet */
	int64_t mark_ns;		/* when the latest was given to it */
	uint64_t late_cnt;		/* results that came after their window's report */
	struct keeper *keeper;		/* NULL: nothing is kept */
	struct webhook *webhook;	/* NULL: reports are not sent */
	int64_t keep_ns, first_tick_ns; /* not before: the next state for it; 0: none yet */
	struct hub_show show;		/* page NULL: no page is served */
	int64_t show_ns;		/* not before: the next state for it */
	struct carpet carpet;		/* for the page */
};

void hub_take_state(void *arg, const struct bus_message *message); /* struct wire_state */
/* Publishes and frees the report. wanted: print it also without a finding. */
void hub_publish_report(struct hub *hub, struct report *report, uint64_t number, bool wanted);
void hub_fill_overhead(const struct hub *hub, struct report_overhead *ret);
void hub_fill_pace(const struct hub *hub, struct report *report);
void hub_log_cost(const struct hub *hub, const char *event);
/* number: 0 for the last report of a job, which has no file of its own. */
void hub_remember_report(struct hub *hub, const struct report *report, uint64_t number);
void hub_reply(struct hub *hub, int status, const char *text); /* to all that wait; 0 or errno */
/* Returns false if it may only take long: then nothing is reported. */
bool hub_report_blocked(struct hub *hub, int64_t now_ns);
/* Starts a profile or reports a hang if it is due; logs changes of the job's pace. */
void hub_decide(struct hub *hub, int64_t now_ns);
/* The window is concluded: when the store has it, hosts need not keep its results. */
void hub_mark_window(struct hub *hub, uint64_t epoch, uint64_t order_id, int *ranks, size_t cnt);
/* The same of the profile, with the ranks that it has, before it is forgotten. */
void hub_mark_profile(struct hub *hub, uint64_t epoch, uint64_t order_id);
/* Whether the end of the job has to wait for the store. */
bool hub_marks_wait(const struct hub *hub, int64_t now_ns);
/* A fingerprint of a window that is reported. */
void hub_take_late(struct hub *hub, uint64_t order_id, int rank, const char *path);
void hub_take_result(void *arg, const struct bus_message *message); /* struct wire_result */
/* Says what the store has; reports a window of an earlier hub that is due, or all: any. */
void hub_recover(struct hub *hub, bool all, int64_t now_ns);
/* Whether no overhead measurement may begin now: the first check-up goes before it. */
bool hub_holds_audit(const struct hub *hub, int64_t now_ns);
/* Whether the job is slow, or was at its end, for long enough to call it so. Fills its pace. */
bool hub_is_slow(const struct hub *hub, struct jobstate_pace *ret);
