/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of `perftracker status`: a table, the lines about one of them, JSON. */
#pragma once

#include "live/run/jobs.h"

#include <stdio.h>

/* One line for each job. */
void status_jobs_table(const job_about_vec *jobs, FILE *out);

/* The same for jobs of a fleet, as its hub sees them. */
void status_fleet_table(const job_about_vec *jobs, FILE *out);

/* Name, folder, and the latest report of a job. */
void status_job_lines(const struct job_about *about, FILE *out);

/* The value of "jobs". Returns 0 or -ENOMEM. */
_must_check_ int status_jobs_json(const job_about_vec *jobs, FILE *out);
