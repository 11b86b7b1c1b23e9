/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/native/symboltable.h"

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

static void offer_to_all(const struct module *module, const struct table *table,
			 const GElf_Sym *symbol, struct symbol_query *queries, size_t cnt)
{
	const char *name = NULL;

	for (size_t at = first_from(queries, cnt, symbol->st_value);
	     at < cnt && queries[at].addr - symbol->st_value < symbol->st_size; at++) {
		if (name == NULL)
			name = elf_strptr(module->elf, table->strings, symbol->st_name);
		if (name != NULL && *name != '\0')
			offer(&queries[at], symbol, name);
	}
}

/* A library may have half a million symbols: those outside the range of queries are skipped. */
static void find_in(const struct module *module, GElf_Word type, struct symbol_query *queries,
		    size_t cnt)
{
	const uintptr_t first = queries[0].addr, last = queries[cnt - 1].addr;
	const Elf64_Sym *symbols;
	struct table table;

	if (!find_table(module, type, &table) || gelf_getclass(module->elf) != ELFCLASS64)
		return;
	symbols = table.data->d_buf;
	for (size_t i = 0; i < MIN(table.cnt, table.data->d_size / sizeof(*symbols)); i++)
		if (symbols[i].st_value <= last &&
		    symbols[i].st_value + symbols[i].st_size > first && is_function(&symbols[i]))
			offer_to_all(module, &table, &symbols[i], queries, cnt);
}

/* The dynamic table is small, and the only one of a stripped file. */
void symboltable_find(const struct module *module, struct symbol_query *queries, size_t cnt)
{
	bool missing = false;

	if (cnt == 0)
		return;
	find_in(module, SHT_DYNSYM, queries, cnt);
	for (size_t i = 0; i < cnt; i++)
		missing = missing || queries[i].name == NULL;
	if (missing)
		find_in(module, SHT_SYMTAB, queries, cnt);
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

void symboltable_lookup(const struct module *module, const char *const *names, uintptr_t *ret_addrs,
			size_t cnt)
{
	memset(ret_addrs, 0, cnt * sizeof(*ret_addrs));
	lookup_in(module, SHT_DYNSYM, names, ret_addrs, cnt);
	if (cnt > 0 && ret_addrs[0] == 0)
		lookup_in(module, SHT_SYMTAB, names, ret_addrs, cnt);
}
