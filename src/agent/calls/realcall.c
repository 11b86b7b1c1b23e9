/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/calls/realcall.h"

#include "base/compat.h"

#include <link.h>
#include <string.h>

#ifdef PT_GLIBC_BASE
PT_OLD_SYMBOL(dlclose);
PT_OLD_SYMBOL(dlvsym);
#endif

#define NAME_TAIL 64u /* bytes of a library's path that are kept to know it again */
#define NO_FINDER 1u

/* The library that contains an address. */
struct place {
	uintptr_t start, end;
	const struct link_map *map;
	const char *name; /* "": the program itself. Valid while the library is loaded */
};

/* The beginning of struct dl_find_object of glibc 2.35. */
struct found_object {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	unsigned long long others[16];
};

#ifdef DLFO_STRUCT_HAS_EH_DBASE
_Static_assert(offsetof(struct dl_find_object, dlfo_map_start) ==
			       offsetof(struct found_object, start) &&
		       offsetof(struct dl_find_object, dlfo_link_map) ==
			       offsetof(struct found_object, map) &&
		       sizeof(struct dl_find_object) <= sizeof(struct found_object),
	       "glibc's struct");
#endif

typedef int finder(void *address, struct found_object *ret);

/* Libraries that call, in the order in which they were met. None is forgotten. */
enum state { FREE, BUSY, KNOWN };
static struct library {
	_Atomic uint32_t state;
	uintptr_t start, end;
	const struct link_map *map;
	size_t name_len;
	char name_tail[NAME_TAIL];
} libraries[REALCALL_LIBRARIES];

/* --- who calls --- */

/* The only lookup without a lock. NULL: the C library is older. */
static finder *get_finder(void)
{
	static _Atomic uintptr_t known;
	uintptr_t value = atomic_load_explicit(&known, memory_order_relaxed);

	if (value == 0) {
		value = (uintptr_t)dlsym(RTLD_DEFAULT, "_dl_find_object");
		value = value != 0 ? value : NO_FINDER;
		atomic_store_explicit(&known, value, memory_order_relaxed);
	}
	return value != NO_FINDER ? (finder *)value : NULL;
}

static bool ask_finder(finder *find, const void *site, struct place *ret)
{
	struct found_object object;

	if (find((void *)(uintptr_t)site, &object) != 0)
		return false;
	*ret = (struct place){ (uintptr_t)object.start, (uintptr_t)object.end, object.map,
			       object.map->l_name };
	return true;
}

struct search {
	uintptr_t site;
	struct place found;
};

/* 1 ends the search. */
static int look_at_library(struct dl_phdr_info *info, _unused_ size_t size, void *arg)
{
	struct search *search = arg;
	uintptr_t start = UINTPTR_MAX, end = 0;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD)
			continue;
		start = MIN(start, (uintptr_t)(info->dlpi_addr + part->p_vaddr));
		end = MAX(end, (uintptr_t)(info->dlpi_addr + part->p_vaddr + part->p_memsz));
	}
	if (search->site < start || search->site >= end)
		return 0;
	search->found = (struct place){ start, end, NULL, info->dlpi_name };
	return 1;
}

static bool ask_linker(const void *site, struct place *ret)
{
	struct search search = { .site = (uintptr_t)site };

	if (dl_iterate_phdr(look_at_library, &search) == 0)
		return false;
	*ret = search.found;
	return true;
}

/* --- libraries that are known --- */

static const char *tail_of(const char *name, size_t len)
{
	return name + (len < NAME_TAIL ? 0 : len - NAME_TAIL);
}

/* False for a library loaded at the addresses of an unloaded one. */
static bool is_at(const struct library *library, const struct place *place)
{
	size_t len;

	if (library->start != place->start || library->end != place->end ||
	    library->map != place->map)
		return false;
	len = strlen(place->name);
	return library->name_len == len && memcmp(library->name_tail, tail_of(place->name, len),
						  MIN(len, (size_t)NAME_TAIL)) == 0;
}

/* place: NULL without _dl_find_object; known libraries stay loaded then. Returns 0 if unknown. */
static uint32_t find_library(uintptr_t site, const struct place *place)
{
	for (uint32_t i = 1; i < REALCALL_LIBRARIES; i++) {
		const struct library *library = &libraries[i];
		uint32_t state = atomic_load_explicit(&library->state, memory_order_acquire);

		if (state == FREE)
			break;
		if (state == KNOWN && site >= library->start && site < library->end &&
		    (place == NULL || is_at(library, place)))
			return i;
	}
	return 0;
}

/* Returns its index; REALCALL_LIBRARIES: the table is full. */
static uint32_t add_library(const struct place *place)
{
	size_t len = strlen(place->name);

	for (uint32_t i = 1; i < REALCALL_LIBRARIES; i++) {
		struct library *library = &libraries[i];
		uint32_t state = FREE;

		if (!atomic_compare_exchange_strong(&library->state, &state, BUSY))
			continue;
		library->start = place->start;
		library->end = place->end;
		library->map = place->map;
		library->name_len = len;
		memcpy(library->name_tail, tail_of(place->name, len), MIN(len, (size_t)NAME_TAIL));
		atomic_store_explicit(&library->state, KNOWN, memory_order_release);
		return i;
	}
	return REALCALL_LIBRARIES;
}

/* --- the function without the agent --- */

/* NULL if it is the agent's own function. */
static void *unless_agents(void *found)
{
	static const char here;
	Dl_info info, own;

	if (found == NULL || dladdr(found, &info) == 0 || dladdr(&here, &own) == 0)
		return found;
	return info.dli_fbase != own.dli_fbase ? found : NULL;
}

/* Keeps its library loaded. */
static void keep(void *found)
{
	Dl_info info;

	if (dladdr(found, &info) != 0 && info.dli_fname != NULL)
		(void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* CUDA's functions have the library's name as their version. NULL: no version. */
static const char *version_of(const struct realcall *real, void *function)
{
	const char *version = NULL;
	void *library;
	Dl_info info;

	if (dladdr(function, &info) == 0 || info.dli_fname == NULL)
		return NULL;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (library == NULL)
		return NULL;
	for (size_t i = 0; version == NULL && real->libraries[i] != NULL; i++) {
		if (dlvsym(library, real->symbol, real->libraries[i]) == function)
			version = real->libraries[i];
	}
	(void)dlclose(library);
	return version;
}

/* As the linker binds a library linked to own: the first of that version, or without one. */
static void *first_for(const struct realcall *real, void *own)
{
	void *next = unless_agents(dlsym(RTLD_NEXT, real->symbol));
	const char *wanted, *version;

	if (next == NULL || next == own)
		return own;
	wanted = version_of(real, own);
	version = version_of(real, next);
	if (wanted == NULL || version == NULL || version == wanted)
		return next;
	next = unless_agents(dlvsym(RTLD_NEXT, real->symbol, wanted));
	return next != NULL ? next : own;
}

/* NULL: the caller is not linked to such a library. */
static void *look_for_caller(const struct realcall *real, const char *caller, bool stays)
{
	void *library = NULL, *own;

	if (caller[0] != '\0')
		library = dlopen(caller, RTLD_LAZY | RTLD_NOLOAD);
	if (library == NULL)
		return NULL;
	own = unless_agents(dlsym(library, real->symbol));
	if (!stays)
		(void)dlclose(library);
	return own != NULL ? first_for(real, own) : NULL;
}

static void *look(const struct realcall *real, const char *caller, bool stays)
{
	void *found = look_for_caller(real, caller, stays);

	if (found == NULL)
		found = unless_agents(dlsym(RTLD_NEXT, real->symbol));
	for (size_t i = 0; found == NULL && real->libraries[i] != NULL; i++) {
		void *library = dlopen(real->libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library != NULL)
			found = unless_agents(dlsym(library, real->symbol));
		if (library != NULL && found == NULL)
			(void)dlclose(library);
	}
	if (found != NULL)
		keep(found);
	return found;
}

/* idx 0: outside of libraries, or in an unknown one. */
static void *look_up(struct realcall *real, const void *site, uint32_t idx)
{
	finder *find = get_finder();
	struct place place = { .name = "" };
	bool in_library = find != NULL ? ask_finder(find, site, &place) : ask_linker(site, &place);
	void *found;

	if (in_library && idx == 0)
		idx = add_library(&place);
	if (idx == REALCALL_LIBRARIES) {
		found = atomic_load_explicit(&real->first, memory_order_acquire);
		return found != NULL ? found : look(real, place.name, find == NULL);
	}
	found = look(real, place.name, find == NULL);
	if (found != NULL) {
		void *none = NULL;

		(void)atomic_compare_exchange_strong(&real->first, &none, found);
		atomic_store_explicit(&real->found[idx], found, memory_order_release);
	}
	return found;
}

void *realcall_find(struct realcall *real, const void *site)
{
	finder *find = get_finder();
	struct place place;
	bool in_library = find == NULL || ask_finder(find, site, &place);
	uint32_t idx = 0;
	void *found;

	if (in_library)
		idx = find_library((uintptr_t)site, find != NULL ? &place : NULL);
	if (in_library && idx == 0)
		return look_up(real, site, 0);
	found = atomic_load_explicit(&real->found[idx], memory_order_acquire);
	return found != NULL ? found : look_up(real, site, idx);
}
