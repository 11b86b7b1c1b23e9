/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the repair of one fault alone gives back. What a worker loses is not yet what it costs:
 * others may be as late for another reason, and a pipeline has pauses that take up delays.
 * But a collective begins when its last member arrives: repair of some makes it begin no
 * earlier than the last of the others arrives.
 */
#pragma once

#include "localize/witness/witness.h"

/*
 * Sets hidden_ns of those accusations by blame whose workers meet others in matched
 * collectives, and are late always, not by turns. What is left is at least what findings need,
 * as a fault behind another is one too. Sets it of all accusations so that no gain is more than
 * an iteration, nor, by blame, than the longest wait for the accused. Returns 0 or -ENOMEM.
 * O(accusations * (collectives + waits)).
 */
_must_check_ int gain_find_hidden(const struct job *job, const struct blame *blame,
				  const struct accuse_options *options, accusations *list);
