/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of hostd, shared by hostd.c (socket, clients, requests), fromhub.c (the hub's messages),
 * aboutjob.c (MSG_JOB), windows.c (windows, sidecars, summaries), hostgpus.c, blocked_stacks.c.
 */
#pragma once

#include "base/vec.h"
#include "format/shared/message.h"
#include "live/gpuwatch/gpuwatch.h"
#include "live/hostd/aboutjob.h"
#include "live/hostd/hangstacks.h"
#include "live/hostd/hostd.h"
#include "live/hostd/netwatch.h"
#include "live/hostd/owncosts.h"
#include "live/hostd/stallhunt.h"
#include "live/hostd/worker.h"

/* One connection: a worker after MSG_HELLO, else a client with a request. */
struct client {
	struct hostd *hostd;
	uint64_t id;
	int fd;
	uint32_t pid; /* from SO_PEERCRED */
	uv_poll_t poll;
	bool is_worker, closing;
	struct worker worker;
	struct exitwatch *exit; /* NULL: the end of the process is not watched */
};

/*
 * The summarizing of one worker's window into a fingerprint: from a trace file, or from the
 * flight recorder, which a summarizer follows while the window is open.
 */
struct summary {
	uint32_t worker;
	uint64_t order_id;
	int sidecar_fd; /* a follower's sidecar, in memory; -1: it reads a trace file */
	bool cut_short; /* the worker died in the window */
	char trace[MESSAGE_TEXT], fingerprint[4096];
};

struct hostd {
	struct hostd_setup setup;
	int listen_fd;
	uv_poll_t listener;
	uv_timer_t drain_timer, sample_timer;
	VEC(struct client *) clients;
	VEC(struct summary *) summaries;
	VEC(struct exitwatch *) exits;
	uint64_t next_client, refused; /* refused: invalid datagrams and connections */
	struct pool *pool;
	struct stallhunt *stallhunt; /* NULL: --no-stall-window */
	struct hangstacks hangstacks;
	struct bus_sub *subs[10];
	struct wire_overhead overhead; /* the latest from the hub */
	struct own_costs own;
	struct contenders contenders;
	struct netwatch netwatch;
	struct gpuwatch *gpuwatch;	  /* NULL: no memory for it */
	int64_t gpus_reported_ns;	  /* when gpuwatch_state() was last reported */
	uint32_t sampler_faults;	  /* crashed and killed samplers of that state */
	uint64_t gpus_shared;		  /* bit i: told that ranks share GPU i */
	char gpu_dir[128];		  /* folder of the agent's own sampler */
	bool sampling;			  /* a window is open on this host */
	bool suspended, window_stops;	  /* as detector_suspend(): a profile slows the job */
	int64_t hub_heard_ns;		  /* time of the latest wire_profile or window begin */
	uint64_t hub_epoch, hub_sequence; /* of the latest wire_profile */
	uint64_t order_id;		  /* the latest; 0: none, or it is canceled */
	struct about_job about;		  /* for MSG_JOB and MSG_STATUS */
	bool closing;
	int64_t drained_ns;
	int open_handles;
};

/* To the hub; a full bus drops and counts it. */
void hostd_publish(struct hostd *hostd, const char *subject, const void *data, size_t len);
void hostd_publish_state(struct client *client);

/* The worker's process has ended; what it has sent is still read. */
void hostd_take_end(struct client *client);
void hostd_closed_one(struct hostd *hostd);  /* a handle of the loop */
int hostd_save_records(struct hostd *hostd); /* of all workers; 0 or the last -errno */
/* Returns 0 or -errno. Fills in the header. */
int hostd_reply(struct client *client, const struct message *message);

_must_check_ int hostd_subscribe(struct hostd *hostd); /* to the hub's messages; 0 or -errno */
/* Suspends all detectors: from a window's begin to the last complete trace the job is slower. */
void hostd_suspend(struct hostd *hostd);

/* Restarts the detectors' silence: the time until now is not counted, later time is. */
void hostd_forget_silence(struct hostd *hostd);

/* bus_handler: suspends or resumes as the hub's struct wire_profile says; repeats are harmless. */
void hostd_take_profile(void *arg, const struct bus_message *message);

/* Resumes the detectors if the hub has been silent for a minute. */
void hostd_mind_hub(struct hostd *hostd, int64_t now_ns);

/* Starts gpuwatch as --gpu-samples says. Needs hostd->setup. Returns NULL when out of memory. */
struct gpuwatch *hostd_start_gpuwatch(struct hostd *hostd);

/* gpuwatch's state to /metrics, once a second; logs crashes of samplers and GPUs that ranks share. */
void hostd_report_gpus(struct hostd *hostd, int64_t now_ns);

/* Logs and counts GPU faults at once, also in a healthy job: such a GPU may end the job. */
void hostd_report_gpu_faults(struct hostd *hostd);

/* Answers of a worker to its order. */
void hostd_take_begun(struct client *client, const struct message *message);
void hostd_take_missed(struct client *client, const struct message *message);
void hostd_take_done(struct client *client, const struct message *message);

/* The worker is gone: the part of a window becomes a fingerprint that is kept, not compared. */
void hostd_take_death(struct client *client);

void hostd_free_summary(struct summary *summary); /* and closes its sidecar */

/* pool_done: a fingerprint is ready, or can't be made. */
void hostd_summary_done(void *arg, uint64_t id, int status, const char *text);
