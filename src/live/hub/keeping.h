/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub says to the keeper, for the store. */
#pragma once

#include "live/hub/hub.h"

/* The job as it is, once a second. */
void hub_keep_state(struct hub *hub, int64_t now_ns);

/* The same for the page that shows it, whether the job is kept or not. */
void hub_show_state(struct hub *hub);

/* The job has ended, and its last report is published. */
void hub_keep_end(struct hub *hub, const struct job_end *end);

/* The hub of another host decides from now on, and keeps the job. */
void hub_keep_led(struct hub *hub);

/* The fingerprints of the profile that was just compared. */
void hub_keep_window(struct hub *hub);
