/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks and collectives of blocked workers, read from their flight recorders: the latest
 * stack of the training thread, and the latest collective that each process group entered.
 * Fields without a record are empty.
 */
#pragma once

struct hostd;

/*
 * Publishes a struct wire_where for every worker of this host if another worker became
 * blocked since the last call, and again each minute while one is: a blocked worker waits for the others, or they wait for it.
 * Takes some ms per worker then. What their stacks show follows seconds later: hangstacks.h.
 */
void blocked_stacks_publish(struct hostd *hostd);
