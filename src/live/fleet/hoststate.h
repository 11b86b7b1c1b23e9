/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which jobs hostd has, for a hostd that is started while they run: a file of keys in its run folder,
 * which only hostd's user can write. All else about a job follows from its key.
 */
#pragma once

#include "live/fleet/hostservice_parts.h"

#define HOSTSTATE_FILE "jobs" /* in the run folder */

/* Writes the jobs of now. What cannot be written is said in the log once. */
void hoststate_save(struct hostservice *service);

/* Takes the jobs of an earlier hostd whose daemons still run, and connects these to the bus again. */
void hoststate_load(struct hostservice *service);
