/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class of an event: the one table that decides what is compute, memory,
 * communication or host work. Names are matched by prefix or substring; a name
 * that no row knows falls to the default stated at classify_event().
 * Source: PerfTracker section 4.2.
 */
#pragma once

#include "model/event.h"

enum classify_mode {
	CLASSIFY_DEVICE,   /* the trace has device activity */
	CLASSIFY_CPU_ONLY, /* it has none: leaf operators do the computing */
};

/*
 * Class of an event of this kind and name.
 *
 * With a device: kernels are comm when a communication library named them,
 * memory when they are the runtime's own that copy or fill, else compute; device
 * copies and sets, and runtime calls that allocate or free, are memory; all else,
 * calls that copy, set or wait among it, is host.
 * CPU only: "gloo:", "mpi:", "ucc:" and "c10d::" are comm; leaf operators are
 * memory when they copy, allocate or fill, host when they only make views, else
 * compute when they are of a namespace ("aten::mm", "mylib::op"); operators
 * without one and all else are host.
 * leaf: no other operator runs inside this one.
 */
enum event_class classify_event(enum event_kind kind, const char *name, bool leaf,
				enum classify_mode mode);

/* A kernel or annotation of a communication library that is an execution. */
bool classify_is_collective(enum event_kind kind, const char *name);
