/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is long everywhere, beyond the expectation, but does not explain why the job became slow:
 * it was as long when the job was healthy. Worth a note, no finding.
 */
#pragma once

#include "localize/parts.h"
#include "localize/verdict/conclude.h"

/*
 * Of what is marked as usual: the largest that one of several ranks spends where its peers spend
 * nothing, CHANCE_PCT of an iteration or more, if no collective was matched that would show whether
 * they wait for it. name NULL: none. A job that is slow from its first step is as fast as ever.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int usual_find_unequal(const struct job *job, const struct blame *blame,
				    const struct accuse_options *options, const accusations *list,
				    struct conclude_late *ret);

/*
 * Takes accusations that are marked as usual out of the list, and notes each in
 * notes[PARTS_MAX_NOTES]. Returns 0 or -ENOMEM.
 */
_must_check_ int usual_note(struct report *out, const char **notes, const struct job *job,
			    const struct accuse_options *options, accusations *list);

/*
 * A check-up looks at a job that has not become slow. On a machine that also does other work, some
 * rank always lacks a CPU for a moment. Where the window is a check-up: takes findings
 * of a lack of CPU that cost less than CHECKUP_STARVED_PCT out of out->findings, and notes each.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int usual_note_starved(struct report *out, const char **notes);
