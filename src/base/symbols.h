/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up functions of a library opened at run time. */
#pragma once

#include "base/base.h"

#include <dlfcn.h>
#include <string.h>

struct symbol {
	void *function; /* address of the pointer to set */
	const char *name;
};

/*
 * Sets the pointers of the table from library (a dlopen() handle). Returns NULL, or the first
 * missing name; pointers of that entry and later ones are unchanged.
 */
static inline const char *symbols_find(void *library, const struct symbol *table, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		void *address = dlsym(library, table[i].name);

		if (address == NULL)
			return table[i].name;
		memcpy(table[i].function, &address, sizeof(address));
	}
	return NULL;
}
