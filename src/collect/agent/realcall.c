/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agent/realcall.h"

#include "base/compat.h"

#define SITE_BUSY 1u /* being filled in: no place has this address */

static void *look_in_library_of(const void *site, const char *symbol)
{
	void *library = NULL;
	Dl_info info;

	if (dladdr(site, &info) != 0 && info.dli_fname != NULL && info.dli_fname[0] != '\0')
		library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return library != NULL ? dlsym(library, symbol) : NULL;
}

static void *look(const struct realcall *real, const void *site)
{
	void *found = dlsym(RTLD_NEXT, real->symbol);

	if (found == NULL)
		found = look_in_library_of(site, real->symbol);
	for (size_t i = 0; found == NULL && real->libraries[i] != NULL; i++) {
		void *library = dlopen(real->libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library != NULL)
			found = dlsym(library, real->symbol);
	}
	return found;
}

void *realcall_look_up(struct realcall *real, const void *site)
{
	void *found = look(real, site);

	for (uint32_t i = 0; i < REALCALL_SITES && found != NULL; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&real->sites[i].site, &none, SITE_BUSY))
			continue;
		atomic_store_explicit(&real->sites[i].found, found, memory_order_relaxed);
		atomic_store_explicit(&real->sites[i].site, (uintptr_t)site, memory_order_release);
		break;
	}
	return found;
}
