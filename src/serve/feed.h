/* SPDX-License-Identifier: Apache-2.0 */
/*
 * News of jobs that run, for streams of server-sent events: job (its state, step and pace), event
 * (what happened) and report. They come from the store, which the main thread asks once a second; a
 * ring keeps the last ones for clients that come back. A hub writes every ten seconds and after
 * each report.
 * Source: HTML Living Standard, "Server-sent events".
 */
#pragma once

#include "base/str.h"

#define FEED_RING_MAX 1024u
#define FEED_JOBS_MAX 10000u

struct feed;

/* place: of the store; "": none. start_ns: wall clock; tells ids of this server from earlier ones. */
struct feed *feed_new(const char *place, int64_t start_ns);
struct feed *feed_free(struct feed *feed);

/*
 * Asks the store. now_ns: wall clock. Returns whether there is news; an error of the store is taken
 * as no news, and the next look opens it again. What is there at the first look is no news.
 */
bool feed_look(struct feed *feed, int64_t now_ns);

/* Adds one event; data: one line. For feed_look() and tests. */
void feed_push(struct feed *feed, const char *name, const char *data);

/*
 * The number that a stream begins after. last: the Last-Event-ID of a client that comes back, or
 * NULL: now. *ret_gap: events between are lost, the client has to ask for all again.
 */
uint64_t feed_begin(struct feed *feed, const char *last, bool *ret_gap);

/* Of server_follow_fn: appends events after *after, at least one if there is any. Any thread. */
void feed_follow(void *arg, uint64_t *after, size_t max, struct str *out);
