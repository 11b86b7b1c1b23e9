/* SPDX-License-Identifier: Apache-2.0 */
#include "model/comparison.h"

const char *change_kind_name(enum change_kind kind)
{
	static const char *const names[CHANGE_KIND_CNT] = {
		[CHANGE_GREW] = "grew",		[CHANGE_SHRANK] = "shrank",
		[CHANGE_APPEARED] = "appeared", [CHANGE_VANISHED] = "vanished",
		[CHANGE_RENAMED] = "renamed",	[CHANGE_MOVED] = "moved",
	};

	return (unsigned int)kind < CHANGE_KIND_CNT ? names[kind] : "unknown";
}

const char *comparison_verdict_name(enum comparison_verdict verdict)
{
	static const char *const names[] = { "same", "slower", "faster", "uncertain" };

	return (unsigned int)verdict < ARRAY_SIZE(names) ? names[verdict] : "unknown";
}

void comparison_done(struct comparison *comparison)
{
	arena_done(&comparison->arena);
	*comparison = (struct comparison){ 0 };
}
