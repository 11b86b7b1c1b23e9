/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `perftracker hub`: one for a site. For each job that hosts say they have (Presence) it starts a
 * child, the leader of that job, which decides, reports into FOLDER/uUSER/JOB, and writes the store.
 * A leader that fails is started again and learns from hosts how the job is. The hub says every
 * second that it is there; a second one of the same cluster refuses to start.
 * If the hub ends, hosts watch their jobs alone; the next hub goes on with them.
 * Source: ARCHITECTURE.md, "A fleet".
 */
#pragma once

#include "live/site/site.h"

struct hubservice_setup {
	struct site *site;
	const char *program;	 /* this executable */
	const char *config;	 /* the site's file, which leaders read, too */
	const char *const *sets; /* --set of the command line; end with NULL */
};

/* Serves until SIGTERM or SIGINT. Returns the exit status of the process. */
int hubservice_run(const struct hubservice_setup *setup);
