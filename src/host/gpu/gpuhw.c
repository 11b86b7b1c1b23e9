/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gpu/gpuhw.h"

#include "host/gpu/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct gpuhw_ops *const gpuhw_all[] = { &nvml_ops };

int gpuhw_open(struct gpuhw *hw, char why[static GPUHW_WHY])
{
	size_t len = 0;

	*hw = (struct gpuhw){ 0 };
	why[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(gpuhw_all); i++) {
		char reason[GPUHW_WHY] = "";
		void *state;

		if (gpuhw_all[i]->open(&state, reason) == 0) {
			*hw = (struct gpuhw){ gpuhw_all[i], state };
			why[0] = '\0';
			return 0;
		}
		if (len < GPUHW_WHY)
			len += (size_t)snprintf(why + len, GPUHW_WHY - len, "%s%s",
						len > 0 ? "; " : "", reason);
	}
	return -ENODEV;
}

void gpuhw_close(struct gpuhw *hw)
{
	if (hw->ops != NULL)
		hw->ops->close(hw->state);
	*hw = (struct gpuhw){ 0 };
}
