/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of this folder's other files by -Dgpu_calls=false: counts and times nothing. */
#include "agent/calls/gpucalls.h"
#include "agent/calls/gputimer.h"

void gpucalls_open(void)
{
}

bool gpucalls_are_wanted(void)
{
	return false;
}

void gpucalls_watch(_unused_ bool on)
{
}

void gpucalls_forked(void)
{
}

gputimer gputimer_begin(_unused_ void *queue)
{
	return 0;
}

void gputimer_end(_unused_ gputimer timer)
{
}

void gputimer_claim(_unused_ gputimer timer, _unused_ const struct ring_record *records,
		    _unused_ size_t cnt)
{
}
