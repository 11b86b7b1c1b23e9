/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of a trace's names. Millions of events share a few hundred names, so each name is
 * examined once.
 */
#pragma once

#include "model/event.h"

enum name_fact {
	NAME_STEP = 1u << 0,	      /* "ProfilerStep#12" */
	NAME_OPTIMIZER = 1u << 1,     /* "Optimizer.step#..." */
	NAME_LOADER = 1u << 2,	      /* "enumerate(DataLoader)..." */
	NAME_FORWARD = 1u << 3,	      /* contains ".forward" */
	NAME_BACKWARD = 1u << 4,      /* an operator of the autograd engine */
	NAME_BOOTSTRAP = 1u << 5,     /* root of a thread that the program started */
	NAME_RUN_BACKWARD = 1u << 6,  /* the Python function that waits for the autograd thread */
	NAME_OWN_HOOK = 1u << 7,      /* a function of the agent's hook */
	NAME_COMPREHENSION = 1u << 8, /* code of Python that is written within a function */
};

/* Bits of enum name_fact by string id. The caller frees it; NULL: out of memory. */
_must_check_ uint16_t *names_facts(const struct strtab *strings);
