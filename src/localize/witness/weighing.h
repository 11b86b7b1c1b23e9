/* SPDX-License-Identifier: Apache-2.0 */
/* Accusations beside one another: which are one fault, and which are not sure. */
#pragma once

#include "localize/past.h"
#include "localize/witness/witness.h"

/* Whether some worker is among the accused of both. O(n log n). */
bool weighing_shares_workers(const struct accusation *a, const struct accusation *b);

/*
 * A worker that is only slower in what all of them do too much of is no second
 * fault: the common one comes first, and its repair takes the other with it.
 */
void weighing_drop_covered(const struct job *job, accusations *list);

/* Where single links or groups are slow, the network that all share is not. */
void weighing_drop_network(const struct job *job, accusations *list);

/*
 * A short window has few samples: much of it in one function may be chance, as its spread over
 * the iterations shows. A library's function, such as the engine of backward passes, has much of
 * many healthy jobs, and so has any function of a job without operators: without a past, nothing
 * says whether it has more than usual. Weak evidence
 * where all workers are accused alike (evidence_confidence()).
 */
void weighing_doubt(const struct job *job, const struct past *past,
		    const struct accuse_options *options, accusations *list);

/*
 * Ranks that meet by sockets of their own have no collectives that show who came last: the one that
 * waits at its socket takes as much longer as the one that is slow. Takes accusations of such waits
 * out of the list where another, of other workers that do not wait, loses about as much. The
 * processes of a worker's own loader are part of it: who waits for these is no victim.
 */
void weighing_drop_victims(const struct job *job, accusations *list);

/*
 * Takes accusations by blame out of the list whose repair alone gives back nearly nothing though no
 * other accusation hides it and they are not late in each iteration: others are as late by chance. Of a device that is slower in all
 * that it does, "nearly nothing" is what devices of one kind differ by. The gains are those of a
 * repair alone (gain_find_hidden()).
 */
void weighing_drop_slight(const struct job *job, const struct blame *blame,
			  const struct accuse_options *options, accusations *list);

/*
 * Takes out a single device that is little slower than others with the same work in all that it does:
 * no two are alike. Returns 0 or -ENOMEM. O(accusations * workers).
 */
_must_check_ int weighing_drop_chips(const struct job *job, accusations *list);

/*
 * Takes out accusations of communication that are little beside those of late ranks, or of what all ranks
 * do outside of it.
 */
void weighing_drop_minor(const struct job *job, accusations *list);

/*
 * Takes out accusations by blame of host functions in which the others' threads are for as long.
 * Returns 0 or -ENOMEM. O(accusations * workers).
 */
_must_check_ int weighing_drop_common(const struct job *job, accusations *list);
