/* SPDX-License-Identifier: Apache-2.0 */
/* What hostd answers to MSG_JOB: name, folder, state and latest report of the job. */
#pragma once

#include "live/link/wire_report.h"

struct client;

struct about_job {
	uint32_t supervisor_pid; /* `perftracker run` */
	int64_t started_wall_ns;
	uint32_t restarts;
	bool reported;
	struct wire_report report; /* the latest, if reported */
};

/* Sends a "key=value" in each datagram, and an empty one at the end. */
void hostd_answer_job(struct client *asker);
