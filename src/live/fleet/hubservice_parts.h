/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the fleet's hub: hubservice.c has the bus, hubjobs.c the leaders of jobs. */
#pragma once

#include "base/vec.h"
#include "live/fleet/hubservice.h"
#include "live/fleet/hubui.h"
#include "live/fleet/jobchild.h"
#include "live/fleet/jobkey.h"
#include "live/fleet/service.h"

#define HUBJOB_SETS_MAX 16u

struct hubservice;

struct hubjob {
	struct hubservice *hub;
	char key[JOBKEY_MAX], name[64], out[600], socket[108];
	struct jobchild child; /* pid 0: none runs */
	uv_poll_t control;
	bool polled, over, closing; /* over: its leader has made the last report */
	int64_t heard_ns, start_ns; /* start: not before */
	int64_t over_ns;
	unsigned failures; /* of the leader, one after the other */
};

struct hubservice {
	struct hubservice_setup setup;
	struct service service;
	struct bus_login login;
	struct bus_sub *subs[2];
	VEC(struct hubjob *) jobs;
	uint64_t epoch;
	int64_t connected_ns; /* since then; 0: not yet */
	int64_t beat_ns, end_ns;
	bool serving, refused; /* no other hub is there; another one is */
	char other[64];
	uint64_t unreadable, unknown_cluster, dropped;
	bool full_logged, version_logged;
	struct hubui *ui; /* NULL: no page */
};

/* A host has the job. */
void hubjobs_hear(struct hubservice *hub, const char *key, int64_t now_ns);
void hubjobs_tick(struct hubservice *hub, int64_t now_ns);
void hubjobs_reap(struct hubservice *hub);

/* Leaders end without a last report: their jobs go on. */
void hubjobs_drop_all(struct hubservice *hub);

/* Kills those that are left. */
void hubjobs_close_all(struct hubservice *hub);
