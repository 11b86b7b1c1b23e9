/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class of an event: one table decides what is compute, memory, communication or host work.
 * Names are matched by prefix or substring; a name without a match gets the default stated at
 * classify_event().
 * Source: PerfTracker section 4.2.
 */
#pragma once

#include "model/event.h"

enum classify_mode {
	CLASSIFY_DEVICE,   /* the trace has device activity */
	CLASSIFY_CPU_ONLY, /* no device activity: leaf operators do the computing */
};

/*
 * Class of an event of this kind and name.
 *
 * With a device: kernels of a communication library are comm; the runtime's own copy and fill
 * kernels are memory; other kernels are compute. Device copies and sets, and runtime calls that
 * allocate or free, are memory. Everything else, including calls that copy, set or wait, is host.
 * CPU only: "gloo:", "mpi:", "ucc:" and "c10d::" are comm. Leaf operators are memory if they copy,
 * allocate or fill; host if they only make views; else compute if they have a namespace
 * ("aten::mm", "mylib::op"). Operators without a namespace and everything else are host. leaf: no
 * other operator runs inside this one.
 */
enum event_class classify_event(enum event_kind kind, const char *name, bool leaf,
				enum classify_mode mode);

/* Whether a kernel or annotation of a communication library is an execution. */
bool classify_is_collective(enum event_kind kind, const char *name);
