/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/weighing.h"

#include "localize/usercode.h"
#include "model/thresholds.h"

void weighing_drop_covered(const struct job *job, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];
		bool covered = false;

		vec_foreach(other, list) {
			bool common = other->witness == WITNESS_EXPECTATION &&
				      other->frame != FRAME_NONE &&
				      other->worker_cnt == job->worker_cnt;

			covered |= common && a->witness == WITNESS_BLAME && a->spread &&
				   a->function != FRAME_NONE && other->gain_ns > a->gain_ns &&
				   job_frame_below(job, job->functions.data[a->function].frame,
						   other->frame);
		}
		if (!covered)
			list->data[kept++] = *a;
	}
	list->cnt = kept;
}

/* Whether a worker grew there beyond the noise of both windows, and more than the rest of it did. */
static bool worker_grew_surely(const struct past *past, size_t w, uint32_t frame)
{
	double sure = past_sure_growth_ns(past, w, frame, PAST_SURE);

	return sure > 0 && past_growth_beyond_ns(past, w, frame) >= PAST_ALIKE * sure;
}

/* Whether half of the accused workers that have a past did. */
static bool grew_surely(const struct past *past, const struct accusation *a)
{
	size_t known = 0, grown = 0;

	for (size_t i = 0; i < a->worker_cnt; i++) {
		uint32_t w = a->workers[i];

		known += past->workers[w].known;
		grown += worker_grew_surely(past, w, a->frame);
	}
	return 2 * grown >= known;
}

void weighing_doubt(const struct job *job, const struct past *past,
		    const struct accuse_options *options, accusations *list)
{
	vec_foreach(a, list) {
		if (a->witness != WITNESS_EXPECTATION || a->frame == FRAME_NONE)
			continue;
		a->unsure = a->recalled
				    ? !grew_surely(past, a)
				    : options->live && !usercode_is(&job->frames.data[a->frame]);
	}
}
