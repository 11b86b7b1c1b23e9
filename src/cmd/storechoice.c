/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/storechoice.h"

#include <errno.h>

int storechoice_open(const char *given, struct store **ret, struct err *err)
{
	char where[4200];
	int r;

	store_place(given, where, sizeof(where));
	if (where[0] == '\0')
		return err_set(err, ENOENT, "no store: name one with --store");
	r = store_open_to_read(where, ret, err);
	if (r == -ENOENT || r == -ENODATA)
		return err_set(err, -r,
			       "%s: no job is kept there yet: `perftracker run` keeps each job, "
			       "unless --store none is set",
			       where);
	return r;
}
