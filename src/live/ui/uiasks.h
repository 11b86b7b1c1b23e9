/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that people ask for on a page: each is a request at the socket of the job's daemon, as
 * `perftracker profile` makes it, and its outcome is kept for the page. The server's thread asks
 * and prints, another one looks for outcomes.
 */
#pragma once

#include "report/jsonwriter.h"
#include "serve/routes.h"

#define UIASKS_WAITING_MAX 8u
#define UIASKS_KEPT_MAX 32u

struct uiasks;

struct uiasks *uiasks_new(void); /* NULL: out of memory */
struct uiasks *uiasks_free(struct uiasks *asks);

/*
 * socket: of the job's daemon. Returns 0; -ENOENT: no daemon is there; -EBUSY: UIASKS_WAITING_MAX wait
 * already; or -errno, with a line in err.
 */
_must_check_ int uiasks_send(struct uiasks *asks, const char *socket,
			     const struct routes_wish *wish, struct err *err);

/* Takes the answers that have come; never waits. Call it once a second. Returns whether there was one. */
bool uiasks_look(struct uiasks *asks);

/* "requests" of "Live": those for this job, the latest first. */
void uiasks_put(struct uiasks *asks, const char *job, struct json_writer *w, json_t *to);
