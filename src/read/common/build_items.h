/* SPDX-License-Identifier: Apache-2.0 */
/* What readers give to build.h. */
#pragma once

#include "model/event.h"

/* A pid or tid: a number, or an interned text such as "Spans". */
struct ident {
	int64_t num;
	uint32_t text; /* string id; 0: it is the number */
};

static inline bool ident_same(struct ident a, struct ident b)
{
	return a.num == b.num && a.text == b.text;
}

/* Ids of one event in 32 bits: see build_code(). */
struct link {
	uint32_t id, parent;
};

#define CODE_NONE UINT32_MAX

/* Python frames and launching calls are found by their ids. */
static inline bool build_has_id(const struct event *event)
{
	return event->kind == KIND_PYTHON || event->kind == KIND_RUNTIME;
}

/* One half of a begin/end pair. */
struct half {
	int64_t time_ns;
	uint32_t name, args;
	uint16_t lane;
	uint8_t kind;
	bool is_end;
	uint32_t order;
};

/* What a sample measures: string ids of counter and series; device, tid: -1 if of none. */
struct series {
	uint32_t name, key;
	int64_t device, tid;
};
