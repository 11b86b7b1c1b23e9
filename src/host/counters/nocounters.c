/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of this folder's other files by -Dgpu_counters=false: the two functions that the doctor calls. */
#include "host/counters/pmsampling.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

int pm_library_find(_unused_ struct pm_library *library, _unused_ const char *named,
		    _unused_ const char *path_list, _unused_ int driver, char why[static GPUHW_WHY])
{
	(void)snprintf(why, GPUHW_WHY, "built with -Dgpu_counters=false");
	return -ENOTSUP;
}

const char *pm_library_file(_unused_ const struct pm_library *library)
{
	return NULL;
}
