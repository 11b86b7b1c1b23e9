/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions from the symbol tables of ELF files. A name counts only if the symbol's size
 * covers the address: the nearest preceding symbol of a stripped library is most often wrong.
 */
#pragma once

#include "stacks/native/modules.h"

/* An address in a file, and the function that has it. */
struct symbol_query {
	uintptr_t addr;
	const char *name; /* in the file's memory; NULL: no symbol covers it */
	uintptr_t start;
	uint32_t rank; /* of the symbol among those that cover it */
};

/* Fills name and start. queries[cnt] are sorted by address. One pass over each symbol table. */
void symboltable_find(const struct module *module, struct symbol_query *queries, size_t cnt);

/*
 * The address in the file of a variable or function, for each of names[cnt]; 0: there is none. The
 * full symbol table is looked at only if the first name is not in the dynamic one.
 */
void symboltable_lookup(const struct module *module, const char *const *names, uintptr_t *ret_addrs,
			size_t cnt);
