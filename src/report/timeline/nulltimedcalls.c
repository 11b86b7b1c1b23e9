/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of timedcalls.c by -Dgpu_calls=false: draws no timed calls. */
#include "report/timeline/timeline_parts.h"

int timeline_collect_timed(_unused_ struct rank_view *view)
{
	return 0;
}

int timeline_timed(_unused_ const struct rank_view *view, _unused_ slice_vec *ret)
{
	return 0;
}

void timeline_put_timed(_unused_ struct place *to, _unused_ const struct timed_slice *timed,
			_unused_ bool *first)
{
}
