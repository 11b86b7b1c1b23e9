/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/otherhosts.h"

static struct wire_state *find(struct otherhosts *others, uint32_t worker)
{
	uint32_t i = idmap_get(&others->places, worker);

	return i < others->states.cnt && others->states.data[i].worker == worker
		       ? &others->states.data[i]
		       : NULL;
}

static int set_place(struct otherhosts *others, const struct wire_state *state)
{
	return idmap_set(&others->places, state->worker, (uint32_t)(state - others->states.data));
}

static void add(struct otherhosts *others, const struct wire_state *state)
{
	if (others->states.cnt >= OTHERHOSTS_MAX || vec_push(&others->states, *state) < 0)
		return; /* no memory: it is repeated */
	if (set_place(others, &others->states.data[others->states.cnt - 1]) < 0)
		others->states.cnt--;
}

/* The last one takes its place. */
static void drop(struct otherhosts *others, struct wire_state *known)
{
	*known = others->states.data[--others->states.cnt];
	if (known < others->states.data + others->states.cnt)
		(void)!set_place(others, known); /* the map has room: it has this key */
}

void otherhosts_take(struct otherhosts *others, const struct wire_state *state)
{
	struct wire_state *known;

	if (state->worker < WIRE_OWN_WORKERS)
		return;
	known = find(others, state->worker);
	if (state->phase == PHASE_GONE) {
		if (known != NULL)
			drop(others, known);
	} else if (known != NULL) {
		*known = *state;
	} else {
		add(others, state);
	}
}

void otherhosts_done(struct otherhosts *others)
{
	vec_done(&others->states);
	idmap_done(&others->places);
}
