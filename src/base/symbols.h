/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a library that is opened at run time. */
#pragma once

#include "base/base.h"

#include <dlfcn.h>
#include <string.h>

struct symbol {
	void *function; /* address of the pointer to set */
	const char *name;
};

/*
 * Sets the pointers of the table. Returns NULL, or the first name that the library (of dlopen())
 * lacks; the pointers from there on are as before.
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
