/* SPDX-License-Identifier: Apache-2.0 */
/* What hostd answers to MSG_JOB, name, folder, state and latest report of the job, and to MSG_STATUS. */
#pragma once

#include "live/hostd/otherhosts.h"
#include "live/link/wire_report.h"
#include "live/link/wire_window.h"

struct client;

struct about_job {
	uint32_t supervisor_pid; /* `perftracker run` */
	int64_t started_wall_ns;
	uint32_t restarts;
	bool reported;
	struct wire_report report; /* the latest, if reported */
	struct otherhosts others;
	struct wire_spools spools; /* of a fleet */
};

/* Sends a "key=value" in each datagram, and an empty one at the end. */
void hostd_answer_job(struct client *asker);

/*
 * Sends one datagram for each worker from the given one on, as many as a socket surely holds, then
 * the last one. Workers of this host come first.
 */
void hostd_answer_status(struct client *asker, uint64_t from);
