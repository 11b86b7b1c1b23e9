/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The center's mailbox of one profile: messages of hosts (fpwire.h) in, a report out.
 * Any message may come late, twice, in pieces or never. Of several fingerprints of one
 * rank the latest window counts, of one window the most detailed; the report depends
 * on what came, not on when: not a byte of it changes with the order.
 *
 * A worker costs 12 bytes for each of its functions and about 120 more. Whole
 * fingerprints are made only of some workers, from their messages, which therefore
 * must stay where they are.
 */
#pragma once

#include "center/columns/columns_report.h"
#include "center/wire/fpwire.h"
#include "model/thresholds.h"

struct ingest_counts {
	uint64_t messages, names;  /* taken: all, those with names only */
	uint64_t damaged, foreign; /* not taken: unreadable; of another profile or type */
	uint64_t repeated;	   /* fingerprints of a rank that had one */
	uint64_t unranked;	   /* fingerprints without a rank, not taken */
	uint64_t unresolved;	   /* functions whose names have not come; by ingest_localize() */
};

struct ingest;

/* Gathers what answers this order. Returns 0 or -ENOMEM. */
_must_check_ int ingest_open(uint64_t profile, struct ingest **ret);
struct ingest *ingest_close(struct ingest *ingest);

/*
 * Takes one message, borrowed until ingest_close(). Returns 0, also for a message that
 * is not for this profile; -EINVAL with a line in err for one that can't be read, and
 * the ingest goes on without it; -ENOMEM or -ENOBUFS. O(len).
 */
_must_check_ int ingest_add(struct ingest *ingest, const void *data, size_t len, struct err *err);

/* Appends what to ask the sender of the latest message; see fpwire_ask(). */
_must_check_ int ingest_ask(struct ingest *ingest, uint8_t ask_max, struct str *out);

/*
 * Compares all workers; ends the adding. whole_max: INGEST_WHOLE_MAX, or another number
 * of workers up to which localize() does it. Returns 0, -ENODATA without any worker,
 * -EINVAL when called twice, or another errno, with a line in err; report_done() frees
 * *ret.
 */
_must_check_ int ingest_localize(struct ingest *ingest, const struct localize_options *options,
				 size_t whole_max, struct report *ret, struct err *err);

struct ingest_counts ingest_counts(const struct ingest *ingest);
