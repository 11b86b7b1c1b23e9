/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: dlsym finds nothing that PERFTRACKER_HIDE names, as if the
 * library that has it were of another version.
 */
#define dlsym dlsym_of_libc
#include <dlfcn.h>
#undef dlsym
#include <stdlib.h>
#include <string.h>

void *dlsym(void *handle, const char *name);

static void *(*find_real(void))(void *, const char *)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	void *found = NULL;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && found == NULL; i++)
		found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	return found;
}

void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);
	const char *hidden = getenv("PERFTRACKER_HIDE");

	if (real == NULL)
		real = find_real();
	if (hidden != NULL && strstr(name, hidden) != NULL)
		return NULL;
	return real(handle, name);
}
