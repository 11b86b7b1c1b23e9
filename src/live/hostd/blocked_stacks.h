/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where workers stand when iterations end no more, out of their flight recorders: the latest
 * stack of the thread that trains, and which collective of each group it entered last.
 * What a recorder doesn't tell is empty.
 */
#pragma once

struct hostd;

/*
 * Whoever is blocked is waited for, or waits for another: as soon as one more of this host's
 * workers is, the hub is told where all of them stand. Then it takes some ms for each.
 */
void blocked_stacks_publish(struct hostd *hostd);
