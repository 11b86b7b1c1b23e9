/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of hostd, shared by its two files: hostd.c (socket, clients,
 * messages) and hostd_window.c (windows, sidecars, summaries).
 */
#pragma once

#include "base/vec.h"
#include "format/shared/message.h"
#include "live/gpuwatch/gpuwatch.h"
#include "live/hostd/hostd.h"
#include "live/hostd/netwatch.h"
#include "live/hostd/pool.h"
#include "live/hostd/worker.h"

/* One connection: a worker after MSG_HELLO, else somebody who asks. */
struct client {
	struct hostd *hostd;
	uint64_t id;
	int fd;
	uint32_t pid; /* as the kernel says */
	uv_poll_t poll;
	bool is_worker, closing;
	struct worker worker;
};

/*
 * A window on its way to a fingerprint: a trace file, or the flight recorder, which
 * a process of our own follows while the window is open.
 */
struct summary {
	uint32_t worker;
	uint64_t order_id;
	int sidecar_fd; /* of one that follows: memory for what the host saw; else -1 */
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
	uint64_t next_client;
	struct pool *pool;
	struct bus_sub *subs[6];
	struct wire_overhead overhead; /* latest that the hub told */
	struct contenders contenders;
	struct netwatch netwatch;
	struct gpuwatch *gpuwatch; /* NULL: no memory for it */
	int64_t gpus_reported_ns;  /* to /metrics, and: */
	uint32_t sampler_faults;   /* of the latest */
	char gpu_dir[128];	   /* of its own sampler's pieces */
	bool sampling;		   /* a window is open on this host */
	bool suspended;		   /* the detectors are, for our own doing */
	int64_t hub_heard_ns;	   /* when the hub, or a window, last said that they should be */
	uint64_t hub_epoch, hub_sequence; /* of what it said */
	bool closing;
	int64_t drained_ns;
	int open_handles;
	uint64_t refused; /* datagrams and connections that made no sense */
};

/* What goes to the hub; a full bus drops and counts it. */
void hostd_publish(struct hostd *hostd, const char *subject, const void *data, size_t len);
void hostd_publish_state(struct client *client);

/* From the first window's opening to the end of the analysis the job is slowed by us. */
void hostd_suspend(struct hostd *hostd, bool suspended);

/* bus_handler: what the hub says of that (struct wire_profile) is adopted, however often. */
void hostd_take_profile(void *arg, const struct bus_message *message);

/* A hub from which nothing comes any more must not leave the job unwatched. */
void hostd_mind_hub(struct hostd *hostd, int64_t now_ns);

/* As --gpu-samples says. Needs the setup. NULL: no memory for it. */
struct gpuwatch *hostd_start_gpuwatch(struct hostd *hostd);

/* Answers of a worker to its order. */
void hostd_take_begun(struct client *client, const struct message *message);
void hostd_take_missed(struct client *client, const struct message *message);
void hostd_take_done(struct client *client, const struct message *message);

/*
 * The worker is gone, perhaps in a window: what it recorded until then still becomes a
 * fingerprint. That one is kept for people, not compared with those of whole windows.
 */
void hostd_take_death(struct client *client);

/* Closes its descriptor, too. */
void hostd_free_summary(struct summary *summary);

/* pool_done: a fingerprint is ready, or can't be made. */
void hostd_summary_done(void *arg, uint64_t id, int status, const char *text);
