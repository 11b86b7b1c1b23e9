/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/reference.h"

#include <stdio.h>

/* The first slow step is known to so many iterations. */
#define SINCE_ERROR 5u

void reference_done(struct reference *reference)
{
	vec_done(&reference->files);
}

void reference_drop(struct reference *reference)
{
	reference->files.cnt = 0;
	reference->end_step = 0;
}

static uint32_t greatest_learned(const struct wire_state *states, size_t cnt)
{
	uint32_t greatest = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (wire_is_watched(&states[i]))
			greatest = MAX(greatest, states[i].learned_cnt);
	}
	return greatest;
}

void reference_begin(struct reference *reference, const struct wire_state *states, size_t cnt)
{
	uint64_t step = 1;

	for (size_t i = 0; i < cnt; i++)
		step = MAX(step, states[i].step);
	reference_drop(reference);
	reference->end_step = step;
	reference->learned_cnt = greatest_learned(states, cnt);
	reference->accused = false;
}

int reference_add(struct reference *reference, const char *path)
{
	struct reference_file file;

	(void)snprintf(file.path, sizeof(file.path), "%s", path);
	return vec_push(&reference->files, file);
}

void reference_update(struct reference *reference, const struct wire_state *states, size_t cnt)
{
	if (reference->end_step != 0 && greatest_learned(states, cnt) > reference->learned_cnt)
		reference_drop(reference);
}

bool reference_is_usable(const struct reference *reference, uint64_t slow_since_step,
			 const char **why)
{
	*why = NULL;
	if (reference->end_step == 0)
		*why = "no window from before the slowdown to compare with: it began before the "
		       "check-up, or the job's iteration has changed since";
	else if (slow_since_step != 0 && slow_since_step < reference->end_step + SINCE_ERROR)
		*why = "the check-up is not compared with: the slowdown began before its end";
	return *why == NULL;
}
