/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the files of flight recorders, as record.h writes them: "rank3.flight". */
#pragma once

#include "base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_FOLDER "flight" /* in the folder of a run */

/* The rank of such a name, -1: another name, or that of a process before a restart. */
static inline int32_t recordername_rank(const char *name)
{
	static const char prefix[] = "rank", suffix[] = ".flight";
	size_t digits;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return -1;
	name += strlen(prefix);
	digits = strspn(name, "0123456789");
	if (digits == 0 || digits > 6 || strcmp(name + digits, suffix) != 0)
		return -1;
	return (int32_t)strtol(name, NULL, 10);
}
