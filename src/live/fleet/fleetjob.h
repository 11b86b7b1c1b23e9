/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of one job of a fleet: `perftracker __fleet-job KEY=VALUE...`, started by hostd or
 * the hub (jobchild.h) only. Its standard input is the control of live/run/daemon.h,
 * its standard output the stream of relay.h. It writes its log to `daemon.log` in its folder.
 *
 *	role=member|leader  key=...  name=...  out=FOLDER  socket=PATH	command=...
 *	config=FILE and set=KEY=VALUE, any number: the site's configuration
 */
#pragma once

#include "base/base.h"

#define FLEETJOB_LOG "daemon.log"

/* Returns an exit status. words: argc of them. */
int fleetjob_main(int argc, char **words);
