/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/cryptolibrary.h"

#include <dlfcn.h>
#include <errno.h>

int cryptolibrary_open(const struct symbol *table, size_t cnt, struct err *err)
{
	void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (library == NULL)
		library = dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return err_set(err, ENOPKG,
			       "several hosts need OpenSSL's libcrypto, which is not installed: on "
			       "Debian and Ubuntu `apt-get install libssl3`");
	missing = symbols_find(library, table, cnt);
	return missing == NULL ? 0 : err_set(err, ENOPKG, "libcrypto has no %s", missing);
}
