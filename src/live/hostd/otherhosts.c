/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/otherhosts.h"

static struct wire_state *find(struct otherhosts *others, uint32_t worker)
{
	vec_foreach(state, &others->states) {
		if (state->worker == worker)
			return state;
	}
	return NULL;
}

void otherhosts_take(struct otherhosts *others, const struct wire_state *state)
{
	struct wire_state *known;

	if (state->worker < WIRE_OWN_WORKERS)
		return;
	known = find(others, state->worker);
	if (state->phase == PHASE_GONE) {
		if (known != NULL)
			*known = others->states.data[--others->states.cnt];
	} else if (known != NULL) {
		*known = *state;
	} else if (others->states.cnt < OTHERHOSTS_MAX) {
		(void)!vec_push(&others->states, *state); /* no memory: it is repeated */
	}
}

void otherhosts_done(struct otherhosts *others)
{
	vec_done(&others->states);
}
