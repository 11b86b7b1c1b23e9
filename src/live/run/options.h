/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `perftracker run`; constant for hostd and hub. In a fleet, hostd or hub start the
 * daemon of a job with the same options.
 */
#pragma once

#include "base/base.h"
#include "live/metrics/http.h"
#include "live/run/member.h"
#include "live/webhook/webhookfile.h"

struct bus_login;
struct tokens;

enum fleet_role {
	FLEET_MEMBER, /* watches the workers of one host; started by hostd */
	FLEET_LEADER, /* decides and reports; started by the hub */
};

#define FLEET_LIVE_END ".live" /* behind the name of a leader's socket: its job as it is now */

/* The place of a daemon in a fleet. All that it points to is borrowed. */
struct fleet_job {
	enum fleet_role role;
	const char *key;	       /* of the job: fleet/jobkey.h */
	const char *host;	       /* the name of this host on the bus */
	const char *socket;	       /* of this daemon */
	int relay_fd;		       /* FLEET_MEMBER: to hostd, which has the connection */
	const struct bus_login *login; /* FLEET_LEADER: of its own connection */
	int64_t linger_ns;	       /* a job without workers is over after so long */
	bool shown;		       /* FLEET_LEADER: a page of the hub shows the job */
	const struct seal *seal;       /* of orders; NULL: they are not signed */
	int64_t window_ns;	       /* the longest that this host carries out */
	uint32_t windows_per_hour;
	const char *spool_dir; /* FLEET_MEMBER: of this job's results; NULL: in memory only */
	uint64_t spool_bytes;
};

struct run_options {
	const char *output;    /* --output; NULL: a new folder */
	const char *out_dir;   /* the folder in use, absolute; the supervisor makes it (outdir.h) */
	const char *job_name;  /* --job-name, else from the command; for file names, too */
	const char *command;   /* of the job, on one line (commandline.h); NULL: unknown */
	const char *program;   /* this executable, also run as the summarizer */
	int64_t window_ns;     /* --window */
	uint64_t steps_max;    /* --steps */
	double slowdown_frac;  /* --slowdown: 0.05 is 5 % */
	uint32_t recent_cnt;   /* --recent: iterations averaged */
	uint32_t learn_cnt;    /* --learn: identical sequences that give the iteration */
	double blocked_factor; /* --blocked: times the mean iteration */
	int64_t min_gap_ns;    /* --min-gap between profiles */
	double min_gain_pct;   /* --min-gain; negative: localize's default */
	unsigned jobs;	       /* summarizers at once */
	uint32_t source;       /* --source: enum order_source */
	bool exact;	       /* --exact: trace Python calls instead of sampling */
	double budget_always_frac, budget_window_frac; /* --budget-always, --budget-window */
	bool no_audit;				       /* --no-audit */
	int64_t audit_every_ns;			       /* --audit-every; 0: without a pause */
	bool no_checkup;			       /* --no-checkup */
	bool no_stall_window;			       /* --no-stall-window */
	struct netaddress metrics;		       /* --metrics: where; host "": nowhere */
	bool metrics_xpu;			       /* --metrics-compat xpu_timer */
	struct netaddress ui;	   /* --ui: where the page is; without host and path: nowhere */
	const char *ui_token_file; /* --token-file; NULL: none */
	const struct tokens *ui_tokens; /* read from it before the job starts; NULL: none */
	const char *ui_host;		/* --ui-host; NULL: none */
	const char *gpu_samples;  /* --gpu-samples: "own", a folder; "none", NULL: no PM sampling */
	bool gpu_calls;		  /* --gpu-calls: count and time calls of a GPU's libraries */
	struct member member;	  /* among the members of the job; --hub can change it */
	const char *secret_file;  /* --secret-file; NULL: the environment's, or a weak one */
	bool insecure;		  /* --insecure: plain text to other hosts */
	const char *store;	  /* --store: see store_place(); NULL: the default one */
	const char *webhook_path; /* --webhook; NULL: none */
	const struct webhookfile *webhook; /* read from it before the job starts; NULL: none */
	const struct fleet_job *fleet;	   /* NULL: started by `perftracker run` */
	unsigned restarts;  /* how often the supervisor has started this daemon again */
	const char *socket; /* then: of the daemon before, which new workers know */
	bool keep_traces, quiet, json, report_to_stdout;
	bool color, color_always; /* on terminals; anywhere */
};

/* The defaults; without names, folders and a place among members. */
struct run_options run_options_preset(void);
