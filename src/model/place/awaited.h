/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For whom a training thread waited, and where that one spent its time meanwhile. As text:
 * "92 % in train.py(8): collate > <system call read>", where it is no loader's child with its name
 * before: "thread, 92 % in ...".
 */
#pragma once

#include "base/base.h"

enum awaited_by { AWAITED_LOADER, AWAITED_THREAD, AWAITED_CHILD, AWAITED_BY_CNT };

struct awaited {
	enum awaited_by by; /* children of its loader, other threads or other children */
	double frac;	    /* share of their time at work that they were there, 0 to 1 */
	const char *place;  /* functions and a system call, the outermost first */
};

/* "the DataLoader's worker processes", in the plural. */
const char *awaited_name(enum awaited_by by);

/* Cut at size. */
void awaited_write(const struct awaited *awaited, char *text, size_t size);

/* False: no such text. ret->place points into it. */
_must_check_ bool awaited_read(const char *text, struct awaited *ret);
