/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/symbols.h"

#include <gelf.h>
#include <string.h>

struct table {
	Elf_Data *data;
	size_t cnt;
	GElf_Word strings; /* the index of the section with the names */
};

/* The section of that type. False: there is none. */
static bool find_table(const struct module *module, GElf_Word type, struct table *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;

	while ((section = elf_nextscn(module->elf, section)) != NULL) {
		if (gelf_getshdr(section, &head) == NULL || head.sh_type != type ||
		    head.sh_entsize == 0)
			continue;
		ret->data = elf_getdata(section, NULL);
		ret->cnt = head.sh_size / head.sh_entsize;
		ret->strings = head.sh_link;
		if (ret->data != NULL)
			return true;
	}
	return false;
}

/* The full table, or the dynamic one of a stripped file. */
static bool find_any_table(const struct module *module, struct table *ret)
{
	return find_table(module, SHT_SYMTAB, ret) || find_table(module, SHT_DYNSYM, ret);
}

/* Of several names of one function the same one is taken in each run: global, then short. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	const uint32_t len = (uint32_t)MIN(strlen(name), (size_t)1000);

	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3000 - len;
	case STB_WEAK:
		return 2000 - len;
	default:
		return 1000 - len;
	}
}

static size_t first_from(const struct symbol_query *queries, size_t cnt, uintptr_t addr)
{
	size_t low = 0, high = cnt;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (queries[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void offer(struct symbol_query *query, const GElf_Sym *symbol, const char *name)
{
	const uint32_t rank = rank_of(symbol, name);

	if (query->name != NULL &&
	    (symbol->st_value < query->start ||
	     (symbol->st_value == query->start &&
	      (rank < query->rank || (rank == query->rank && strcmp(name, query->name) >= 0)))))
		return;
	query->name = name;
	query->start = symbol->st_value;
	query->rank = rank;
}

static bool is_function(const GElf_Sym *symbol)
{
	const int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size > 0;
}

void symbols_find(const struct module *module, struct symbol_query *queries, size_t cnt)
{
	struct table table;
	GElf_Sym symbol;

	if (cnt == 0 || !find_any_table(module, &table))
		return;
	for (size_t i = 0; i < table.cnt; i++) {
		const char *name = NULL;

		if (gelf_getsym(table.data, (int)i, &symbol) == NULL)
			break;
		if (!is_function(&symbol))
			continue;
		for (size_t at = first_from(queries, cnt, symbol.st_value);
		     at < cnt && queries[at].addr - symbol.st_value < symbol.st_size; at++) {
			if (name == NULL)
				name = elf_strptr(module->elf, table.strings, symbol.st_name);
			if (name != NULL && *name != '\0')
				offer(&queries[at], &symbol, name);
		}
	}
}

static void lookup_in(const struct module *module, GElf_Word type, const char *const *names,
		      uintptr_t *ret_addrs, size_t cnt)
{
	struct table table;
	GElf_Sym symbol;

	if (!find_table(module, type, &table))
		return;
	for (size_t i = 0; i < table.cnt && gelf_getsym(table.data, (int)i, &symbol) != NULL; i++) {
		const char *name;

		if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0)
			continue;
		name = elf_strptr(module->elf, table.strings, symbol.st_name);
		for (size_t j = 0; name != NULL && j < cnt; j++)
			if (ret_addrs[j] == 0 && strcmp(name, names[j]) == 0)
				ret_addrs[j] = symbol.st_value;
	}
}

void symbols_lookup(const struct module *module, const char *const *names, uintptr_t *ret_addrs,
		    size_t cnt)
{
	bool missing = false;

	memset(ret_addrs, 0, cnt * sizeof(*ret_addrs));
	lookup_in(module, SHT_DYNSYM, names, ret_addrs, cnt);
	for (size_t i = 0; i < cnt; i++)
		missing = missing || ret_addrs[i] == 0;
	if (missing)
		lookup_in(module, SHT_SYMTAB, names, ret_addrs, cnt);
}
