/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in a program as text: functions, the outermost first, and what the innermost one waits
 * for: "train.py(8): collate > train.py(3): decode > <system call read>".
 */
#pragma once

#include "base/base.h"

#include <string.h>

#define PLACE_BELOW " > "

/* The innermost function, "train.py(3): decode": where it begins in place, and its length. */
static inline const char *place_innermost(const char *place, size_t *ret_len)
{
	const char *wait = strstr(place, PLACE_BELOW "<system call"), *at = place, *next;
	const char *end = wait != NULL ? wait : place + strlen(place);

	for (next = strstr(at, PLACE_BELOW); next != NULL && next < end;
	     next = strstr(at, PLACE_BELOW))
		at = next + strlen(PLACE_BELOW);
	*ret_len = (size_t)(end - at);
	return at;
}
