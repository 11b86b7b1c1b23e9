/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the job looked like when it was not slow: the fingerprint files of its latest check-up,
 * one of each rank. When the job becomes slow, localize compares the window with them. They are
 * kept until the job has another iteration, and not used for a slowdown that began before they
 * were taken: such a window may show the fault itself.
 */
#pragma once

#include "base/vec.h"
#include "live/link/wire.h"

struct reference_file {
	char path[WIRE_TEXT];
};

struct reference {
	VEC(struct reference_file) files;
	uint64_t end_step;    /* the check-up's window ended before; 0: there is no past */
	uint32_t learned_cnt; /* greatest of the workers, at the check-up */
	double iteration_ms;  /* in that window */
	bool accused; /* the check-up reported a finding: not healthy, but there is no other */
};

void reference_done(struct reference *reference);
void reference_drop(struct reference *reference);

/* A check-up has ended with these workers. Add its files then. */
void reference_begin(struct reference *reference, const struct wire_state *states, size_t cnt);
_must_check_ int reference_add(struct reference *reference, const char *path);

/* The job as it is now: drops the past of another iteration. */
void reference_update(struct reference *reference, const struct wire_state *states, size_t cnt);

/*
 * Whether the past can be compared with a slowdown since this step (0: unknown). If not, *why
 * says why, for the notes of a report; NULL: check-ups are off.
 */
bool reference_is_usable(const struct reference *reference, uint64_t slow_since_step,
			 const char **why);
