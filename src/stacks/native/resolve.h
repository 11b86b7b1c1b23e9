/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of many addresses at once: each file's symbol table is passed over once, whatever
 * the number of threads. Names are as in the file, C++ ones mangled.
 */
#pragma once

#include "base/idmap.h"
#include "stacks/native/modules.h"
#include "stacks/stackreading.h"

struct resolver {
	struct modules *modules; /* borrowed */
	uint32_t interpreter;	 /* the module of Python, or MODULE_NONE */
	struct region *region;	 /* owns the texts */
	VEC(uintptr_t) pcs;
	VEC(struct stacks_frame) frames; /* of pcs, once resolved */
	struct idmap by_pc;		 /* index in both */
};

void resolver_done(struct resolver *resolver);

/* Notes addresses. Returns 0 or -ENOMEM. */
_must_check_ int resolver_add(struct resolver *resolver, const uintptr_t *pcs, size_t cnt);

/* Names all that were added. Returns 0 or -ENOMEM. */
_must_check_ int resolver_run(struct resolver *resolver);

/* The frame of an address that was added and resolved. */
const struct stacks_frame *resolver_frame(const struct resolver *resolver, uintptr_t pc);
